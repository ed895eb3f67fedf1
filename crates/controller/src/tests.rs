//! Scripts and properties of the controller, played against members made of a few lines.

mod configuration;
mod keyspaces;
mod membership;
mod orders;
mod properties;
mod world;
