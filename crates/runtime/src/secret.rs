//! What must not be shown: passwords in the addresses of stores.

/// A text without what stands between the `://` and the `@` of an address in it.
#[must_use]
pub fn scrub(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(SCHEME_END) {
        shown.push_str(before);
        shown.push_str(SCHEME_END);
        let end = after.find([' ', '\t', '\n', '"', '\'', '`', ',']).unwrap_or(after.len());
        let (address, behind) = after.split_at(end);
        shown.push_str(&place(address));
        rest = behind;
    }
    shown.push_str(rest);
    shown
}

const SCHEME_END: &str = "://";

/// What may be shown of what follows `://`: where something is, not who asks there, nor with which
/// parameters.
fn place(address: &str) -> String {
    let (user, place) = address.rsplit_once('@').unwrap_or(("", address));
    if user.contains(['?', '#', '/']) || address.starts_with('/') && address.contains('@') {
        // One of them is part of a password, and nobody knows which.
        return HIDDEN.to_owned();
    }
    place.split(['?', '#']).next().unwrap_or_default().to_owned()
}

const HIDDEN: &str = "...";

#[cfg(test)]
mod tests {
    use super::scrub;

    #[test]
    fn addresses_are_shown_without_passwords() {
        for (text, shown) in [
            ("redis://127.0.0.1:6379/2", "redis://127.0.0.1:6379/2"),
            ("redis://:s3cret@a:1/2", "redis://a:1/2"),
            ("redis://user:s3@cret@a:1", "redis://a:1"),
            ("redis+unix:///run/it?db=1&pass=s3cret", "redis+unix:///run/it"),
            ("redis+unix:///run/it?pass=s3@cret", "redis+unix://..."),
            ("redis://a:1?pass=s3@cret", "redis://..."),
            (
                "a \"redis://:s3cret@a:1\", and `redis://:s3cret@b`",
                "a \"redis://a:1\", and `redis://b`",
            ),
            ("nothing of the kind", "nothing of the kind"),
        ] {
            assert_eq!(scrub(text), shown, "{text}");
        }
    }
}
