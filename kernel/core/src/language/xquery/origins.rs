//! Where the parts of a program stand in its text, and the names that the program itself does not need.

use super::syntax::ExprId;

/// Places are bytes from the start of the text.
#[derive(Clone, Debug, Default)]
pub struct Origins {
    /// By number of the expression.
    pub(crate) exprs: Vec<u32>,
    /// By number of the node test.
    pub(crate) steps: Vec<u32>,
    /// By slot: name of the variable, and where it is bound.
    pub(crate) variables: Vec<(String, u32)>,
    /// By key of `order by`.
    pub(crate) keys: Vec<u32>,
    /// By number of the constructor.
    pub(crate) elements: Vec<u32>,
    /// By attribute of a constructor.
    pub(crate) attributes: Vec<u32>,
    /// By part of a constructor.
    pub(crate) parts: Vec<u32>,
}

impl Origins {
    /// Where an expression begins.
    pub fn expr(&self, id: ExprId) -> usize {
        self.exprs[id as usize] as usize
    }

    /// Where a step begins, by the number of its test.
    pub fn step(&self, test_number: u32) -> usize {
        self.steps[test_number as usize] as usize
    }

    /// The name of a variable: `local`, or `Q{uri}local`.
    pub fn variable(&self, slot: u32) -> &str {
        &self.variables[slot as usize].0
    }

    /// Where the clause begins that binds a variable.
    pub fn clause(&self, slot: u32) -> usize {
        self.variables[slot as usize].1 as usize
    }

    /// Where a key of `order by` begins, by its place among all.
    pub fn key(&self, at: usize) -> usize {
        self.keys[at] as usize
    }

    /// Where a constructor begins.
    pub fn element(&self, number: u32) -> usize {
        self.elements[number as usize] as usize
    }

    /// Where an attribute of a constructor begins, by its place among all.
    pub fn attribute(&self, at: usize) -> usize {
        self.attributes[at] as usize
    }

    /// Where a part of a constructor begins, by its place among all.
    pub fn part(&self, at: usize) -> usize {
        self.parts[at] as usize
    }
}
