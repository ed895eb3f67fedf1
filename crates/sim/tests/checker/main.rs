//! The checker, checked: hand-made histories with a known answer, every small history against a
//! search that tries everything, and long ones with one fault in them.

mod against_everything;
mod brute;
mod generate;
mod hand_made;
mod long;
mod make;
