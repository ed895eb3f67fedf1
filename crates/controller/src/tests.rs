//! Scripts and properties of the controller, played against members made of a few lines.

mod absences;
mod alterations;
mod caches;
mod chaos;
mod clock;
mod configuration;
mod delegations;
mod fences;
mod filling;
mod growing;
mod hot;
mod keyspaces;
mod leases;
mod lending;
mod losses;
mod member;
mod membership;
mod operators;
mod orders;
mod placement;
mod properties;
mod rebuild;
mod switches;
mod vacating;
mod verify;
mod world;
