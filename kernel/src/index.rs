//! Indexes, snapshots and the ids behind query numbers.

use crate::enter::{enter, enter_long, enter_whole};
use crate::matcher::{Matcher, Source};
use crate::reader::{Places, refusal_of};
use pathcast_core::language::query::{Compiler, Namespaces};
use pathcast_core::registry::index::Unknown;
use pathcast_core::registry::snapshot::format::{
    FORMAT, FormatError, KIND_QUERIES, SnapshotFile, Tag,
};
use pathcast_core::registry::snapshot::{NamespaceMap, QueryRecord, queries_of};
use pathcast_core::registry::{catalogue, index as core, snapshot};
use pyo3::exceptions::{PyIndexError, PyKeyError, PyOSError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

pyo3::create_exception!(
    pathcast_kernel,
    SnapshotError,
    pyo3::exceptions::PyValueError,
    "A snapshot file was refused: (kind, reason or version found, version expected)."
);

/// Queries registered under one lock, between two looks for signals.
const CHUNK: usize = 1 << 14;

/// Queries of the usual notation that one of any other counts for, in that.
const LONG_WAY: usize = 64;

/// Row of a query that was not registered, and why.
type NotAddedRow = (usize, core::NotAdded);

/// A changing index.
#[pyclass(frozen)]
pub struct Index(Arc<core::Index>);

#[pymethods]
impl Index {
    /// An empty index whose snapshots say what a message may cost, in JSON.
    #[new]
    fn new(limits: &str) -> Self {
        Index(Arc::new(core::Index::new(limits)))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        enter(py, || self.0.state().len())
    }

    fn __contains__(&self, py: Python<'_>, id: &str) -> PyResult<bool> {
        enter(py, || self.0.state().find(id, |_, _| ()).is_some())
    }

    /// Registers gates (`pathcast_core::registry::index::IndexState::add_gate`), each with its text as its id, and
    /// gives back the rows that were not taken, as `register` does.
    fn register_gates<'py>(
        &self,
        py: Python<'py>,
        texts: Vec<String>,
    ) -> PyResult<Vec<(usize, Bound<'py, PyTuple>)>> {
        let not_added = enter_whole(py, || {
            self.0.change(|state| {
                let namespaces = state.namespace_number(&NamespaceMap::new());
                let mut not_added = Vec::new();
                for (row, text) in texts.iter().enumerate() {
                    let record = QueryRecord { id: text, text, namespaces };
                    not_added.extend(state.add_gate(record).err().map(|why| (row, why)));
                }
                not_added
            })
        });
        let told = |(row, why): (usize, core::NotAdded)| Ok((row, why_of(py, &why, &texts[row])?));
        not_added.into_iter().map(told).collect()
    }

    /// Registers (id, text, namespaces or None, language, which is not looked at) and gives back the rows that were not
    /// taken, each with a refusal as `read_query` raises it. Its code is "query.duplicate" where the id is taken.
    fn register<'py>(
        &self,
        py: Python<'py>,
        queries: &Bound<'py, PyList>,
        namespaces: NamespaceMap,
    ) -> PyResult<Vec<(usize, Bound<'py, PyTuple>)>> {
        let mut not_added = Vec::new();
        let mut start = 0;
        // Maps that queries share are shared objects as a rule; look at each object once.
        let mut scopes = vec![QueryScope::of(namespaces.clone())];
        let mut scope_of: HashMap<usize, usize> = HashMap::new();
        while start < queries.len() {
            let end = queries.len().min(start + CHUNK);
            let mut chunk = Chunk::default();
            for row in start..end {
                let query = queries.get_item(row)?;
                let (id, text, own, _): (
                    Bound<'_, PyString>,
                    Bound<'_, PyString>,
                    Option<Bound<'_, PyAny>>,
                    Bound<'_, PyAny>,
                ) = query.extract()?;
                let scope = match own {
                    None => 0,
                    Some(own) => match scope_of.get(&(own.as_ptr() as usize)) {
                        Some(&scope) => scope,
                        None => {
                            let mut map = namespaces.clone();
                            map.extend(own.extract::<NamespaceMap>()?);
                            scopes.push(QueryScope::of(map));
                            scope_of.insert(own.as_ptr() as usize, scopes.len() - 1);
                            scopes.len() - 1
                        }
                    },
                };
                chunk.push(id.to_str()?, text.to_str()?, scope);
            }
            let (scopes, mut next) = (&scopes, 0);
            while next < chunk.rows.len() {
                let rows;
                (next, rows) =
                    enter_whole(py, || self.0.change(|state| chunk.register(state, scopes, next)));
                for (row, why) in rows {
                    not_added.push((start + row, why_of(py, &why, chunk.text_of(row))?));
                }
                py.check_signals()?;
            }
            start = end;
        }
        Ok(not_added)
    }

    /// Removes queries, all or none.
    ///
    /// Raises KeyError with the position of the first unknown id.
    fn remove(&self, py: Python<'_>, ids: Vec<String>) -> PyResult<()> {
        let removed =
            enter_whole(py, || self.0.change(|state| state.remove(ids.iter().map(String::as_str))));
        removed.map_err(|Unknown(at)| PyKeyError::new_err(at))
    }

    /// (text, namespaces) of an id.
    fn query(&self, py: Python<'_>, id: &str) -> PyResult<Option<(String, NamespaceMap)>> {
        let copied = |query: QueryRecord<'_>, namespaces: &NamespaceMap| {
            (query.text.to_owned(), namespaces.clone())
        };
        enter(py, || self.0.state().find(id, copied))
    }

    /// Merges everything into an immutable snapshot.
    fn freeze(&self, py: Python<'_>) -> PyResult<Snapshot> {
        enter_long(py, || self.0.freeze()).map(Snapshot)
    }

    /// A matcher that sees every change.
    fn matcher(
        &self,
        limits: &Bound<'_, PyAny>,
        threads: usize,
        cache_bytes_max: usize,
    ) -> PyResult<Matcher> {
        let source = Source::Index(Arc::clone(&self.0));
        Matcher::new(source, limits, threads, cache_bytes_max)
    }

    /// Bytes that the queries registered since the last freeze occupy.
    fn memory(&self, py: Python<'_>) -> PyResult<usize> {
        enter(py, || self.0.state().memory())
    }
}

/// Namespaces of queries, as they are stored and as they are asked.
struct QueryScope {
    map: NamespaceMap,
    resolver: Namespaces,
}

impl QueryScope {
    fn of(map: NamespaceMap) -> Self {
        QueryScope { resolver: Namespaces::new(map.clone()), map }
    }
}

/// Queries copied out of Python.
#[derive(Default)]
struct Chunk {
    text: String,
    /// End of the id, end of the text, place of the namespaces.
    rows: Vec<(usize, usize, usize)>,
}

impl Chunk {
    fn push(&mut self, id: &str, text: &str, scope: usize) {
        self.text.push_str(id);
        let middle = self.text.len();
        self.text.push_str(text);
        self.rows.push((middle, self.text.len(), scope));
    }

    fn id_and_text(&self, row: usize) -> (&str, &str) {
        let start = if row == 0 { 0 } else { self.rows[row - 1].1 };
        let (middle, end, _) = self.rows[row];
        (&self.text[start..middle], &self.text[middle..end])
    }

    fn text_of(&self, row: usize) -> &str {
        self.id_and_text(row).1
    }

    /// Registers rows from `first` on for as long as a lock may be held; gives the row to go on with.
    fn register(
        &self,
        state: &mut core::IndexState,
        scopes: &[QueryScope],
        first: usize,
    ) -> (usize, Vec<NotAddedRow>) {
        let mut not_added = Vec::new();
        // A merge between two locks numbers the maps anew.
        let mut number_of: HashMap<usize, u32> = HashMap::new();
        let mut compiler = Compiler::default();
        let mut work = 0;
        for row in first..self.rows.len() {
            if work >= CHUNK {
                return (row, not_added);
            }
            let ((id, text), scope) = (self.id_and_text(row), self.rows[row].2);
            let QueryScope { map, resolver } = &scopes[scope];
            let number = || state.namespace_number(map);
            let namespaces = *number_of.entry(scope).or_insert_with(number);
            let record = QueryRecord { id, text, namespaces };
            work += match state.add(record, resolver, &mut compiler) {
                Ok(true) => 1,
                Ok(false) => LONG_WAY,
                Err(why) => {
                    not_added.push((row, why));
                    LONG_WAY
                }
            };
        }
        (self.rows.len(), not_added)
    }
}

fn why_of<'py>(py: Python<'py>, why: &core::NotAdded, text: &str) -> PyResult<Bound<'py, PyTuple>> {
    let code = match why {
        core::NotAdded::Refused(refusal) => return refusal_of(py, refusal, &Places::new(text)),
        core::NotAdded::Duplicate => "query.duplicate",
    };
    (code, "", 0, PyDict::new(py)).into_pyobject(py)
}

/// An immutable snapshot.
#[pyclass(frozen)]
pub struct Snapshot(Arc<snapshot::Snapshot>);

#[pymethods]
impl Snapshot {
    /// Opens a file that holds an automaton; None if it holds queries only.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Option<Self>> {
        let opened = enter(py, || {
            let file = SnapshotFile::open(&path)?;
            if file.kind() == KIND_QUERIES {
                return Ok(None);
            }
            snapshot::Snapshot::from_file(file).map(Some)
        });
        let opened = opened?.map_err(to_python)?;
        Ok(opened.map(|snapshot| Snapshot(Arc::new(snapshot))))
    }

    /// Writes the file beside its place and renames it.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        enter(py, || self.0.file().save(&path))?.map_err(to_python)
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// The ids by number.
    #[getter]
    fn ids(&self) -> IdTable {
        IdTable(catalogue::IdTable::of_snapshot(Arc::clone(&self.0)))
    }

    /// JSON object: what a message may cost, as agreed where it was frozen.
    #[getter]
    fn limits(&self) -> &str {
        self.0.limits()
    }

    /// JSON object: version, queries, states, plans, expressions.
    #[getter]
    fn metadata(&self) -> PyResult<String> {
        Ok(String::from_utf8(self.0.file().bytes(Tag::Metadata).to_vec())?)
    }

    /// Bytes of the file.
    #[getter]
    fn bytes(&self) -> usize {
        self.0.file().as_slice().len()
    }

    /// (number, text, namespaces) of an id.
    fn query(&self, id: &str) -> Option<(u32, String, NamespaceMap)> {
        let number = self.0.number_of(id)?;
        let query = self.0.query(number);
        let namespaces = self.0.namespaces()[query.namespaces as usize].clone();
        Some((number, query.text.to_owned(), namespaces))
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
        let source = Source::Snapshot(Arc::clone(&self.0));
        Matcher::new(source, limits, threads, cache_bytes_max)
    }
}

/// Id, text, namespaces.
type PyQuery = (String, String, NamespaceMap);

/// The limits of any snapshot file, and its queries in the order of the file.
#[pyfunction]
pub fn read_queries(py: Python<'_>, path: PathBuf) -> PyResult<(String, Vec<PyQuery>)> {
    let read = enter(py, || {
        let file = SnapshotFile::open(&path)?;
        let (queries, namespaces) = queries_of(&file)?;
        let limits = String::from_utf8_lossy(file.bytes(Tag::Limits)).into_owned();
        let owned = queries.iter().map(|query| {
            let namespaces = namespaces[query.namespaces as usize].clone();
            (query.id.to_owned(), query.text.to_owned(), namespaces)
        });
        Ok((limits, owned.collect()))
    });
    read?.map_err(to_python)
}

fn to_python(error: FormatError) -> PyErr {
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

/// The ids behind query numbers.
#[pyclass(frozen)]
pub struct IdTable(pub catalogue::IdTable);

#[pymethods]
impl IdTable {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// The ids of these numbers.
    fn take<'py>(&self, py: Python<'py>, numbers: Vec<u32>) -> PyResult<Bound<'py, PyList>> {
        let count = self.0.len();
        if let Some(number) = numbers.iter().find(|&&n| n as usize >= count) {
            return Err(PyIndexError::new_err(format!("nothing has the number {number}")));
        }
        let ids = PyList::empty(py);
        let mut appended = Ok(());
        self.0.for_each(numbers.into_iter(), |id| {
            if appended.is_ok() {
                appended = ids.append(id);
            }
        });
        appended.map(|()| ids)
    }

    /// All ids as a large_string array.
    fn to_arrow<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut builder = arrow_array::builder::LargeStringBuilder::new();
        self.0.for_each(0..self.0.len() as u32, |id| builder.append_value(id));
        crate::matcher::to_pyarrow(py, &builder.finish())
    }
}
