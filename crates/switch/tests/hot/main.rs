//! Hot keys through whole pipelines: what holds of floors, who is chosen, what is forgotten, what
//! becomes of writes, and what threads see of each other.

#[cfg(test)]
mod delegate;
#[cfg(test)]
mod floors;
#[cfg(test)]
mod rack;
#[cfg(test)]
mod selection;
#[cfg(test)]
mod sharing;
