//! The store against a reference model: under random operations, power cuts at every moment, full
//! and failing media, damaged files, other processes and older files.

mod crash;
mod damage;
mod fixture;
mod full;
mod lock;
mod model;
mod operations;
