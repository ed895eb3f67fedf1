//! Rules of users, in the words of Redis.

use super::category::CATEGORIES;
use super::secret::{Hash, hash};
use super::user::{CommandRule, KeyRule, User, Whom};
use crate::command;

/// Makes a rule hold for a user.
pub(super) fn apply(user: &mut User, rule: &str) -> Result<(), String> {
    match rule {
        "on" => user.on = true,
        "off" => user.on = false,
        "nopass" => {
            user.nopass = true;
            user.hashes.clear();
        }
        "resetpass" => {
            user.nopass = false;
            user.hashes.clear();
        }
        "allkeys" => add_key(user, "*", true, true)?,
        "resetkeys" => user.keys.clear(),
        "allcommands" => add_command(user, "+@all")?,
        "nocommands" => add_command(user, "-@all")?,
        "allchannels" => user.channels = vec!["*".to_owned()],
        "resetchannels" => user.channels.clear(),
        "reset" => *user = User::new(&user.name),
        // About commands that restore dumps, which there are none of.
        "sanitize-payload" | "skip-sanitize-payload" => {}
        _ => return apply_marked(user, rule),
    }
    Ok(())
}

/// What an error repeats of a rule: no password, and nothing that may be one whose mark was
/// forgotten.
pub(super) fn shown(rule: &str) -> &str {
    match rule.chars().next() {
        Some('~' | '%' | '&' | '+' | '-' | '(') => rule,
        Some('>' | '<' | '#' | '!') => &rule[..1],
        _ => "a rule that begins with no mark",
    }
}

/// A rule that begins with a mark of what it is about.
fn apply_marked(user: &mut User, rule: &str) -> Result<(), String> {
    let Some(mark) = rule.chars().next() else { return Ok(()) };
    let rest = rule.get(mark.len_utf8()..).unwrap_or_default();
    match mark {
        '>' => add_hash(user, hash(rest.as_bytes())),
        '#' => add_hash(user, read_hash(rest)?),
        '<' => remove_hash(user, &hash(rest.as_bytes()))?,
        '!' => remove_hash(user, &read_hash(rest)?)?,
        '~' => add_key(user, rest, true, true)?,
        '%' => {
            let (rights, pattern) = rest.split_once('~').ok_or("Syntax error")?;
            let (read, write) = match rights.to_ascii_uppercase().as_str() {
                "R" => (true, false),
                "W" => (false, true),
                "RW" | "WR" => (true, true),
                _ => return Err("Syntax error".into()),
            };
            add_key(user, pattern, read, write)?;
        }
        '&' => {
            if user.channels.iter().any(|pattern| pattern == "*") && rest != "*" {
                return Err(
                    "Adding a pattern after the * pattern (or the 'allchannels' flag) is not \
                     valid and does not have any effect. Try 'resetchannels' to start with an \
                     empty list of channels"
                        .into(),
                );
            }
            user.channels.push(rest.to_owned());
        }
        '+' | '-' => add_command(user, rule)?,
        '(' => return Err("there are no selectors here".into()),
        _ => return Err("Syntax error".into()),
    }
    Ok(())
}

fn add_hash(user: &mut User, hash: Hash) {
    user.nopass = false;
    if !user.hashes.contains(&hash) {
        user.hashes.push(hash);
    }
}

fn remove_hash(user: &mut User, hash: &Hash) -> Result<(), String> {
    let before = user.hashes.len();
    user.hashes.retain(|own| own != hash);
    if user.hashes.len() == before {
        return Err("The password you are trying to remove from the user does not exist".to_owned());
    }
    Ok(())
}

fn read_hash(digits: &str) -> Result<Hash, String> {
    const WRONG: &str = "The password hash must be exactly 64 characters and contain only \
                         lowercase hexadecimal characters";
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let plain = |digit: &u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
    if !rest.is_empty() || !digits.bytes().all(|digit| plain(&digit)) {
        return Err(WRONG.into());
    }
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
    bytes.and_then(|bytes| bytes.try_into().ok()).ok_or_else(|| WRONG.to_owned())
}

fn add_key(user: &mut User, pattern: &str, read: bool, write: bool) -> Result<(), String> {
    let rule = KeyRule::new(pattern, read, write).map_err(|error| error.to_string())?;
    if user.keys.iter().any(KeyRule::is_all) && !rule.is_all() {
        return Err(
            "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and \
                    does not have any effect. Try 'resetkeys' to start with an empty list of \
                    patterns"
                .into(),
        );
    }
    if rule.is_all() {
        user.keys.clear();
    }
    user.keys.push(rule);
    Ok(())
}

fn add_command(user: &mut User, rule: &str) -> Result<(), String> {
    const UNKNOWN: &str = "Unknown command or category name in ACL";
    let (allow, name) = (rule.starts_with('+'), rule.get(1..).unwrap_or_default());
    let name = name.to_ascii_lowercase();
    let whom = match name.strip_prefix('@') {
        Some("all") => Whom::All,
        Some(name) => {
            let category = CATEGORIES.iter().find(|category| **category == name);
            Whom::Category(category.ok_or(UNKNOWN)?)
        }
        None => Whom::Command(command::number_of(&name).ok_or(UNKNOWN)?),
    };
    user.add(CommandRule { allow, whom });
    Ok(())
}
