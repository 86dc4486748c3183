//! The cases of `testdata/wellformedness.toml`.

use pathcast_core::xml::parser::{DtdPolicy, Limits};
use serde::Deserialize;

#[derive(Deserialize)]
struct Table {
    case: Vec<Case>,
}

#[derive(Deserialize)]
pub struct Case {
    pub name: String,
    message: Option<String>,
    hex: Option<String>,
    pub encoding: Option<String>,
    #[serde(default)]
    pub limits: toml::Table,
    tree: Option<String>,
    error: Option<String>,
}

impl Case {
    pub fn bytes(&self) -> Vec<u8> {
        match (&self.message, &self.hex) {
            (Some(message), None) => message.clone().into_bytes(),
            (None, Some(hex)) => (0..hex.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex"))
                .collect(),
            _ => panic!("{}: message or hex", self.name),
        }
    }

    pub fn limits(&self) -> Limits {
        let mut limits = Limits::default();
        for (name, value) in &self.limits {
            let number = value.as_integer().unwrap_or(0) as u32;
            match name.as_str() {
                "message_bytes_max" => limits.message_bytes_max = number,
                "depth_max" => limits.depth_max = number,
                "elements_max" => limits.elements_max = number,
                "attributes_max" => limits.attributes_max = number,
                "attribute_value_bytes_max" => limits.attribute_value_bytes_max = number,
                "entity_expansion_ratio_max" => limits.entity_expansion_ratio_max = number,
                "entity_expansion_bytes_max" => limits.entity_expansion_bytes_max = number,
                "names_max" => limits.names_max = number,
                "dtd" => limits.dtd = DtdPolicy::Refuse,
                other => panic!("{}: unknown limit {other}", self.name),
            }
        }
        limits
    }

    pub fn expected(&self) -> &str {
        self.tree.as_deref().or(self.error.as_deref()).expect("tree or error")
    }
}

/// All of them.
pub fn table() -> Vec<Case> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/wellformedness.toml");
    let text = std::fs::read_to_string(path).expect("the table of cases");
    let table: Table = toml::from_str(&text).expect("the table is TOML");
    assert!(table.case.len() >= 200, "only {} cases", table.case.len());
    table.case
}
