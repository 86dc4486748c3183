//! Counters of the work on messages.

/// Counters of a batch; see `pathcast.model.BatchStats`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "described once, in the Python class of the same fields")]
pub struct Stats {
    pub messages: u64,
    pub bytes: u64,
    pub refused: u64,
    pub matches: u64,
    pub nodes: u64,
    pub cache_hits: u64,
    pub cache_misses: u64,
    pub cache_resets: u64,
    pub nfa_messages: u64,
    pub evaluations: u64,
    pub steps: u64,
    pub work: u64,
    pub verdicts: u64,
    pub deliveries: u64,
    pub result_bytes: u64,
    pub parsing_ns: u64,
    pub matching_ns: u64,
    pub collecting_ns: u64,
    pub customising_ns: u64,
}

impl Stats {
    /// Adds the counters of another worker.
    pub(crate) fn add(&mut self, other: &Stats) {
        self.messages += other.messages;
        self.bytes += other.bytes;
        self.refused += other.refused;
        self.matches += other.matches;
        self.nodes += other.nodes;
        self.cache_hits += other.cache_hits;
        self.cache_misses += other.cache_misses;
        self.cache_resets += other.cache_resets;
        self.nfa_messages += other.nfa_messages;
        self.evaluations += other.evaluations;
        self.steps += other.steps;
        self.work += other.work;
        self.verdicts += other.verdicts;
        self.deliveries += other.deliveries;
        self.result_bytes += other.result_bytes;
        self.parsing_ns += other.parsing_ns;
        self.matching_ns += other.matching_ns;
        self.collecting_ns += other.collecting_ns;
        self.customising_ns += other.customising_ns;
    }
}
