//! Snapshots, and the ids behind query numbers.

use crate::delivery_ids::uint32_column;
use crate::enter::enter;
use crate::matcher::{Matcher, Source, to_pyarrow};
use arrow_array::FixedSizeBinaryArray;
use arrow_array::builder::LargeStringBuilder;
use arrow_buffer::Buffer;
use pathcast_core::registry::delivery::dissemination::Dissemination;
use pathcast_core::registry::delivery_ids::ID_BYTES;
use pathcast_core::registry::snapshot::format::{FORMAT, FormatError, SnapshotFile, Tag};
use pathcast_core::registry::{catalogue, snapshot};
use pyo3::exceptions::{PyIndexError, PyOSError};
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::path::PathBuf;
use std::sync::Arc;

pyo3::create_exception!(
    pathcast_kernel,
    SnapshotError,
    pyo3::exceptions::PyValueError,
    "A snapshot file was refused: (kind, reason or version found, version expected)."
);

/// An immutable snapshot.
#[pyclass(frozen)]
pub struct Snapshot(pub Arc<snapshot::Snapshot>);

#[pymethods]
impl Snapshot {
    /// Opens a file.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let opened = enter(py, || snapshot::Snapshot::from_file(SnapshotFile::open(&path)?))?;
        opened.map(|snapshot| Snapshot(Arc::new(snapshot))).map_err(to_python)
    }

    /// Writes the file beside its place and renames it.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        enter(py, || self.0.file().save(&path))?.map_err(to_python)
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// The subscriptions by number.
    #[getter]
    fn entries(&self) -> EntryTable {
        EntryTable(catalogue::EntryTable::of_snapshot(Arc::clone(&self.0)))
    }

    /// JSON object: what a message may cost, as agreed where it was frozen.
    #[getter]
    fn limits(&self) -> &str {
        self.0.limits()
    }

    /// JSON object: version, sum of the digests, queries, states, plans, expressions.
    #[getter]
    fn metadata(&self) -> PyResult<String> {
        Ok(String::from_utf8(self.0.file().bytes(Tag::Metadata).to_vec())?)
    }

    /// Bytes of the file.
    #[getter]
    fn bytes(&self) -> usize {
        self.0.file().as_slice().len()
    }

    /// How many are no filter queries.
    #[getter]
    fn others(&self) -> usize {
        self.0.others()
    }

    /// What the queries ask for: places, constants as numbers and as strings, columns of the paths and of
    /// the predicates.
    fn population<'py>(&self, py: Python<'py>) -> PyResult<crate::population::PyPopulation<'py>> {
        crate::population::columns_of(py, &self.0)
    }

    /// A matcher over this snapshot.
    fn matcher(
        &self,
        limits: &Bound<'_, PyAny>,
        threads: usize,
        cache_bytes_max: usize,
    ) -> PyResult<Matcher> {
        let snapshot = Arc::clone(&self.0);
        let source = if snapshot.others() == 0 {
            Source::Snapshot(snapshot)
        } else {
            Source::Registry(Arc::new(Dissemination::from_snapshot(snapshot)))
        };
        Matcher::new(source, limits, threads, cache_bytes_max)
    }
}

/// The exception of a file that was refused.
pub fn to_python(error: FormatError) -> PyErr {
    match error {
        FormatError::Io(error) => match error.raw_os_error() {
            Some(number) => PyOSError::new_err((number, error.to_string())),
            None => PyOSError::new_err(error.to_string()),
        },
        FormatError::Foreign(reason) => SnapshotError::new_err(("foreign", reason, FORMAT)),
        FormatError::Version(found) => SnapshotError::new_err(("version", found, FORMAT)),
        FormatError::Damaged(reason) => SnapshotError::new_err(("damaged", reason, FORMAT)),
    }
}

/// The subscriptions behind numbers.
#[pyclass(frozen)]
pub struct EntryTable(pub catalogue::EntryTable);

#[pymethods]
impl EntryTable {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// The ids of these numbers.
    fn take<'py>(&self, py: Python<'py>, numbers: Vec<u32>) -> PyResult<Bound<'py, PyList>> {
        self.check(&numbers)?;
        let ids = PyList::empty(py);
        let mut appended = Ok(());
        self.0.for_each(numbers.into_iter(), |id| {
            if appended.is_ok() {
                appended = ids.append(id);
            }
        });
        appended.map(|()| ids)
    }

    /// Ids (large_string), subscribers (large_string) and versions (fixed_size_binary) of the numbers of a uint32 array.
    fn recipients<'py>(
        &self,
        py: Python<'py>,
        numbers: &Bound<'py, PyAny>,
    ) -> PyResult<[Bound<'py, PyAny>; 3]> {
        let numbers = uint32_column(numbers)?;
        self.check(numbers.values())?;
        let (ids, subscribers, versions) = enter(py, || {
            let (mut ids, mut subscribers) = <(LargeStringBuilder, LargeStringBuilder)>::default();
            let mut versions = Vec::with_capacity(numbers.len() * ID_BYTES);
            self.0.for_each_version(numbers.values().iter().copied(), |entry, version| {
                ids.append_value(entry.id);
                subscribers.append_value(entry.subscriber);
                versions.extend_from_slice(version);
            });
            (ids.finish(), subscribers.finish(), versions)
        })?;
        let versions = FixedSizeBinaryArray::new(ID_BYTES as i32, Buffer::from_vec(versions), None);
        Ok([to_pyarrow(py, &ids)?, to_pyarrow(py, &subscribers)?, to_pyarrow(py, &versions)?])
    }

    /// All ids as a large_string array.
    fn to_arrow<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut builder = LargeStringBuilder::new();
        self.0.for_each(0..self.0.len() as u32, |id| builder.append_value(id));
        to_pyarrow(py, &builder.finish())
    }
}

impl EntryTable {
    fn check(&self, numbers: &[u32]) -> PyResult<()> {
        let count = self.0.len();
        match numbers.iter().find(|&&number| number as usize >= count) {
            Some(number) => Err(PyIndexError::new_err(format!("nothing has the number {number}"))),
            None => Ok(()),
        }
    }
}
