//! The checker, checked: hand-made histories with a known answer, every small history against a
//! search that tries everything, and long ones with one fault in them.

#[cfg(test)]
mod against_everything;
#[cfg(test)]
mod brute;
#[cfg(test)]
mod generate;
#[cfg(test)]
mod hand_made;
#[cfg(test)]
mod long;
#[cfg(test)]
mod make;
