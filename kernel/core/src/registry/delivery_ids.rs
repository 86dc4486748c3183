//! The ids of deliveries, for many at a time.
//!
//! `pathcast.registry.identity` says what they are, and is the other implementation:
//!
//! ```text
//! id = version of the subscription + BLAKE2b-128 ( result number as u32, message id as UTF-8 )   modulo 2^128
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
/// Cost: an addition a delivery, and a digest for each message and result number.
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
    // Deliveries come message by message, most of them with the first result numbers.
    let mut last = None;
    let mut digests: [Option<u128>; DIGESTS_KEPT] = [None; DIGESTS_KEPT];
    for at in 0..count {
        let place = deliveries.message_places[at];
        if last != Some(place) {
            digests.fill(None);
            last = Some(place);
        }
        let message = deliveries.messages.get(place as usize)?;
        let result = deliveries.results[at];
        let digest = match digests.get_mut(result as usize) {
            Some(Some(digest)) => *digest,
            kept => {
                if did(DIGEST_WORK) {
                    return None;
                }
                let content = Blake2b::<U16>::new()
                    .chain_update(result.to_le_bytes())
                    .chain_update(message.as_bytes());
                let digest = u128::from_le_bytes(content.finalize().into());
                if let Some(kept) = kept {
                    *kept = Some(digest);
                }
                digest
            }
        };
        let version = versions.get(deliveries.version_places[at] as usize)?;
        let id = u128::from_le_bytes(*version).wrapping_add(digest);
        written.extend_from_slice(&id.to_le_bytes());
    }
    Some(written)
}

/// Work of a digest, as [`did`] counts it.
const DIGEST_WORK: u64 = 16;

/// Result numbers of a message whose digests are kept.
const DIGESTS_KEPT: usize = 16;

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
        assert_eq!(made((1, 1), 7), "61f7c05a8881fba3261179f6d30990ef");
        assert_eq!(made((0, 0), 70_000), "cd2881d4e99adfdb25a5ca8204155e99");
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
