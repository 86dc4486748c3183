//! The ids of deliveries: digests of what makes each of them, for many at a time.
//!
//! `pathcast.registry.identity` says what is digested, and is the other implementation:
//!
//! ```text
//! id = BLAKE2b-128 ( version of the subscription, result number as u32, message id as UTF-8 )
//! ```
//!
//! The version of a subscription is [`ID_BYTES`] long, and made where it subscribes; numbers are little
//! endian. BLAKE2b is RFC 7693, without a key.

use blake2::digest::consts::U16;
use blake2::{Blake2b, Digest};

use crate::engine::interrupt::did;

/// Bytes of an id, and of the version of a subscription.
pub const ID_BYTES: usize = 16;

/// What is digested, column by column: for every delivery the place of its subscription and of its
/// message among the distinct ones, and its result number.
pub struct Deliveries<'a> {
    /// Versions of distinct subscriptions, one after another.
    pub versions: &'a [u8],
    /// A place in `versions` for every delivery.
    pub version_places: &'a [u32],
    /// Distinct ids of messages.
    pub messages: &'a [String],
    /// A place in `messages` for every delivery.
    pub message_places: &'a [u32],
    /// For every delivery.
    pub results: &'a [u32],
}

/// The ids one after another, [`ID_BYTES`] each; `None` if the columns differ in length or a place is
/// beyond what there is, or the work was interrupted.
///
/// Cost: a digest a delivery, of one block where the message id has up to 108 bytes.
pub fn delivery_ids(deliveries: &Deliveries<'_>) -> Option<Vec<u8>> {
    let count = deliveries.results.len();
    if deliveries.message_places.len() != count || deliveries.version_places.len() != count {
        return None;
    }
    let (versions, rest) = deliveries.versions.as_chunks::<ID_BYTES>();
    if !rest.is_empty() {
        return None;
    }
    let mut written = Vec::with_capacity(count * ID_BYTES);
    let mut content = vec![0; HEAD];
    // Deliveries come message by message: its id is written once for all of them.
    let mut last = None;
    for at in 0..count {
        if did(DIGEST_WORK) {
            return None;
        }
        let message = deliveries.message_places[at];
        if last != Some(message) {
            content.truncate(HEAD);
            content.extend_from_slice(deliveries.messages.get(message as usize)?.as_bytes());
            last = Some(message);
        }
        let version = versions.get(deliveries.version_places[at] as usize)?;
        content[..ID_BYTES].copy_from_slice(version);
        content[ID_BYTES..HEAD].copy_from_slice(&deliveries.results[at].to_le_bytes());
        written.extend_from_slice(&Blake2b::<U16>::digest(&content));
    }
    Some(written)
}

/// Work of a digest, as [`did`] counts it.
const DIGEST_WORK: u64 = 16;

/// What stands before the id of the message.
const HEAD: usize = ID_BYTES + size_of::<u32>();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_the_other_implementation() {
        let messages = ["m".repeat(109), "mé".to_owned()];
        let versions: Vec<u8> = (0..32).collect();
        let made = |places: (u32, u32), result| {
            let ids = delivery_ids(&Deliveries {
                versions: &versions,
                version_places: &[0, places.0, 1],
                messages: &messages,
                message_places: &[0, places.1, 1],
                results: &[5, result, 6],
            });
            ids.unwrap()[ID_BYTES..2 * ID_BYTES]
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        };
        assert_eq!(made((1, 1), 7), "dd65716abd50038e0f747010cc186f4a");
        assert_eq!(made((0, 0), 70_000), "17d86d111dc9adcea8b1b00f79f1ebb5");
    }

    #[test]
    fn columns_that_do_not_fit_are_refused() {
        let ids = ["a".to_owned()];
        let of = |versions, message_places, version_places, results| {
            delivery_ids(&Deliveries {
                versions,
                version_places,
                messages: &ids,
                message_places,
                results,
            })
        };
        let version: &[u8] = &[0; ID_BYTES];
        assert_eq!(of(version, &[], &[], &[]), Some(vec![]));
        assert!(of(version, &[0], &[0], &[0]).is_some());
        assert!(of(version, &[1], &[0], &[0]).is_none());
        assert!(of(version, &[0], &[1], &[0]).is_none());
        assert!(of(version, &[0], &[0], &[]).is_none());
        assert!(of(&version[1..], &[0], &[0], &[0]).is_none());
    }
}
