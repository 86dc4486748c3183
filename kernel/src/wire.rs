//! Element streams: columns of messages to streams and back, and the dictionaries of matchers.

use crate::door::{limits_of, refusal_params};
use crate::enter::enter;
use crate::matcher::{Column, to_pyarrow};
use arrow_array::builder::LargeBinaryBuilder;
use arrow_array::make_array;
use arrow_data::ArrayData;
use arrow_pyarrow::FromPyArrow;
use pathcast_core::engine::interrupt::look;
use pathcast_core::registry::batch::Messages;
use pathcast_core::xml::parser::wire;
use pathcast_core::xml::parser::wire::{Dictionary, Encoder, VERSION_BYTES};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

/// Row, code and parameters of a refusal.
type PyRefusal<'py> = (usize, &'static str, Bound<'py, PyDict>);

/// Schema dictionaries by version; a matcher that has them takes element streams.
#[pyclass(frozen)]
pub struct Dictionaries(Arc<wire::Dictionaries>);

#[pymethods]
impl Dictionaries {
    #[new]
    fn new() -> Self {
        Dictionaries(Arc::default())
    }

    /// Adds the names of a version.
    fn add(&self, version: [u8; VERSION_BYTES], names: Vec<String>) {
        self.0.add(Dictionary::new(version, names));
    }

    /// Forgets a version.
    fn remove(&self, version: [u8; VERSION_BYTES]) {
        self.0.remove(version);
    }

    /// A large_binary array of the streams of a binary or large_binary array of messages; a message that
    /// cannot be a stream, or would not be shorter, stays as it is.
    #[pyo3(signature = (messages, version = None))]
    fn encode<'py>(
        &self,
        py: Python<'py>,
        messages: &Bound<'py, PyAny>,
        version: Option<[u8; VERSION_BYTES]>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let array = make_array(ArrayData::from_pyarrow_bound(messages)?);
        let batch = Column::new(&array, None)?;
        let dictionary = version.and_then(|version| self.0.get(version));
        let streams = enter(py, || {
            let mut builder = LargeBinaryBuilder::with_capacity(batch.len(), batch.bytes());
            let (mut encoder, mut stream) = (Encoder::default(), Vec::new());
            for at in (0..batch.len()).take_while(|_| !look()) {
                stream.clear();
                match batch.get(at) {
                    None => builder.append_null(),
                    Some(message) => {
                        let is_stream = encoder.encode(message, dictionary.as_deref(), &mut stream);
                        builder.append_value(if is_stream { &stream } else { message });
                    }
                }
            }
            builder.finish()
        })?;
        to_pyarrow(py, &streams)
    }

    /// The messages that streams stand for, as a large_binary array, and row, code and params of each that
    /// is refused, which is null there. What is no stream stays as it is.
    fn decode<'py>(
        &self,
        py: Python<'py>,
        streams: &Bound<'py, PyAny>,
        limits: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyAny>, Vec<PyRefusal<'py>>)> {
        let array = make_array(ArrayData::from_pyarrow_bound(streams)?);
        let batch = Column::new(&array, None)?;
        let limits = limits_of(limits)?;
        let (messages, refused) = enter(py, || {
            let mut refused = Vec::new();
            let mut builder = LargeBinaryBuilder::with_capacity(batch.len(), 2 * batch.bytes());
            for at in (0..batch.len()).take_while(|_| !look()) {
                match batch.get(at) {
                    None => builder.append_null(),
                    Some(message) if !wire::is_stream(message) => builder.append_value(message),
                    Some(stream) => match wire::text_of(stream, &self.0, &limits) {
                        Ok(text) => builder.append_value(text),
                        Err(refusal) => {
                            builder.append_null();
                            refused.push((at, refusal));
                        }
                    },
                }
            }
            (builder.finish(), refused)
        })?;
        let refused = refused
            .iter()
            .map(|(row, refusal)| Ok((*row, refusal.code.as_str(), refusal_params(py, refusal)?)))
            .collect::<PyResult<_>>()?;
        Ok((to_pyarrow(py, &messages)?, refused))
    }
}

/// What a matcher is given, for its door.
pub fn streams_of(dictionaries: Option<&Dictionaries>) -> Option<Arc<wire::Dictionaries>> {
    dictionaries.map(|dictionaries| Arc::clone(&dictionaries.0))
}
