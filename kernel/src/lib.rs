//! The PyO3 layer: Python objects and Arrow arrays in, numbers and refusals out.
//!
//! Rules: the engine is in `pathcast-core`; nothing here decides anything. Every call that may take long or wait
//! for a lock goes through `enter`, which frees the GIL and looks for signals; a panic of the engine reaches
//! Python as an exception (`pathcast.kernel` turns it into `KernelBugError`).

use pyo3::prelude::*;

mod chunker;
mod deliveries;
mod delivery_ids;
mod dissemination;
mod door;
mod edits;
mod enter;
mod fork;
mod matcher;
mod message_nodes;
mod path_finder;
mod paths;
mod population;
mod program;
mod push;
mod queries;
mod query;
mod reader;
mod records;
mod restructuring;
mod routing;
mod snapshot;
mod subscription;

/// Native kernel of Pathcast.
#[pymodule]
mod pathcast_kernel {
    #[pymodule_export]
    use super::chunker::Chunker;
    #[pymodule_export]
    use super::deliveries::DeliveryAnswer;
    #[pymodule_export]
    use super::delivery_ids::delivery_ids;
    #[pymodule_export]
    use super::dissemination::Dissemination;
    #[pymodule_export]
    use super::door::{door_error_codes, parse};
    #[pymodule_export]
    use super::matcher::{Answer, Matcher};
    #[pymodule_export]
    use super::message_nodes::MessageNodes;
    #[pymodule_export]
    use super::path_finder::PathFinder;
    #[pymodule_export]
    use super::paths::{
        Conjunction, NormalPath, can_be_count, can_hold, coverings, holds, implies, is_any_count,
        paths_before,
    };
    #[pymodule_export]
    use super::population::population_of;
    #[pymodule_export]
    use super::program::{
        is_xquery, refusal_reasons, refused_functions, without_comments, xquery_functions,
        xquery_program,
    };
    #[pymodule_export]
    use super::push::PushParser;
    #[pymodule_export]
    use super::query::{canonical_form, compile_query};
    #[pymodule_export]
    use super::reader::{QueryRefusal, read_query};
    #[pymodule_export]
    use super::records::{RecordCutter, RecordSurvey, place_after, read_head, tag_end};
    #[pymodule_export]
    use super::restructuring::Restructurings;
    #[pymodule_export]
    use super::routing::{RoutingStream, RoutingTable};
    #[pymodule_export]
    use super::snapshot::{EntryTable, Snapshot, SnapshotError};
    #[pymodule_export]
    use super::subscription::compile_subscription;

    #[pymodule_init]
    fn init(module: &super::Bound<'_, super::PyModule>) -> super::PyResult<()> {
        use super::PyModuleMethods;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        super::fork::register(module)
    }
}
