"""XFilter, Hybrid, YFilter with Inline and Selection Postponed, NP-Filter, and an engine of them.

In reading order: `nfa`, `state_execution`, `execution` (the automaton); `predicate`,
`selection_postponed`, `predicate_sorting`, `inline` (values); `query_plan`, `nested_path_filter`
(nested paths); `yfilter` (all of it on one message); `linear_path`, `xfilter`, `hybrid` (the
paper's baselines); `algorithm` (what it compares, by name); `query_table` (queries of several paths
and with expressions); `index`, `snapshot`, `snapshot_file`, `matcher` (the engine around it);
`routing` (tables of entries that lead to targets); `path_finder` (paths in parts of messages).
`oracle` evaluates one query on one message without filtering.

Source: Diao, Altinel, Franklin, Zhang, Fischer: Path Sharing and Predicate Evaluation for
High-Performance XML Filtering, ACM TODS 28(4), 2003.
"""
