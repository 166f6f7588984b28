//! Linux: a fixed address for the executable. Position independence would be paid for in every holder: its relocations
//! alone are a quarter of a megabyte of private memory in each.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
