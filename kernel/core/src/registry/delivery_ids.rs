//! The ids of deliveries: digests of what makes each of them, for many at a time.
//!
//! `pathcast.customize.identity` says what is digested, and is the other implementation:
//!
//! ```text
//! id = BLAKE2b-128 ( version of the subscription, result number as u32, message id as UTF-8 )
//! ```
//!
//! The version of a subscription is [`ID_BYTES`] long, and made where it subscribes; numbers are little
//! endian. BLAKE2b is RFC 7693, without a key.

use crate::engine::interrupt::did;

/// Bytes of an id, and of the version of a subscription.
pub const ID_BYTES: usize = DIGEST;

const BLOCK: usize = 128;
const DIGEST: usize = 16;

const IV: [u64; 8] = [
    0x6a09_e667_f3bc_c908,
    0xbb67_ae85_84ca_a73b,
    0x3c6e_f372_fe94_f82b,
    0xa54f_f53a_5f1d_36f1,
    0x510e_527f_ade6_82d1,
    0x9b05_688c_2b3e_6c1f,
    0x1f83_d9ab_fb41_bd6b,
    0x5be0_cd19_137e_2179,
];

/// RFC 7693, 2.7; of the twelve rounds the last two are the first two again.
const SIGMA: [[usize; 16]; 10] = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
    [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
    [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
    [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
    [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
    [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
    [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
    [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
];

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
        written.extend_from_slice(&digest(&content));
    }
    Some(written)
}

/// Work of a digest, as [`did`] counts it.
const DIGEST_WORK: u64 = 16;

/// What stands before the id of the message.
const HEAD: usize = ID_BYTES + size_of::<u32>();

/// BLAKE2b of 16 bytes.
fn digest(content: &[u8]) -> [u8; DIGEST] {
    let mut state = IV;
    state[0] ^= 0x0101_0000 ^ DIGEST as u64;
    // The last block is never empty, unless all is.
    let whole = content.len().saturating_sub(1) / BLOCK;
    for block in 0..whole {
        let bytes = &content[block * BLOCK..(block + 1) * BLOCK];
        compress(&mut state, bytes, ((block + 1) * BLOCK) as u64, false);
    }
    let mut padded = [0; BLOCK];
    let rest = &content[whole * BLOCK..];
    padded[..rest.len()].copy_from_slice(rest);
    compress(&mut state, &padded, content.len() as u64, true);
    let mut out = [0; DIGEST];
    out[..8].copy_from_slice(&state[0].to_le_bytes());
    out[8..].copy_from_slice(&state[1].to_le_bytes());
    out
}

fn compress(state: &mut [u64; 8], block: &[u8], counter: u64, is_last: bool) {
    let mut words = [0; 16];
    for (word, bytes) in words.iter_mut().zip(block.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    let mut v = [0; 16];
    v[..8].copy_from_slice(state);
    v[8..].copy_from_slice(&IV);
    v[12] ^= counter;
    if is_last {
        v[14] = !v[14];
    }
    round::<0>(&mut v, &words);
    round::<1>(&mut v, &words);
    round::<2>(&mut v, &words);
    round::<3>(&mut v, &words);
    round::<4>(&mut v, &words);
    round::<5>(&mut v, &words);
    round::<6>(&mut v, &words);
    round::<7>(&mut v, &words);
    round::<8>(&mut v, &words);
    round::<9>(&mut v, &words);
    round::<0>(&mut v, &words);
    round::<1>(&mut v, &words);
    for (at, word) in state.iter_mut().enumerate() {
        *word ^= v[at] ^ v[at + 8];
    }
}

/// One round. Its order is a constant, so that the words are found without looking it up.
#[inline(always)]
fn round<const ROUND: usize>(v: &mut [u64; 16], words: &[u64; 16]) {
    let order = const { &SIGMA[ROUND] };
    mix(v, [0, 4, 8, 12], words[order[0]], words[order[1]]);
    mix(v, [1, 5, 9, 13], words[order[2]], words[order[3]]);
    mix(v, [2, 6, 10, 14], words[order[4]], words[order[5]]);
    mix(v, [3, 7, 11, 15], words[order[6]], words[order[7]]);
    mix(v, [0, 5, 10, 15], words[order[8]], words[order[9]]);
    mix(v, [1, 6, 11, 12], words[order[10]], words[order[11]]);
    mix(v, [2, 7, 8, 13], words[order[12]], words[order[13]]);
    mix(v, [3, 4, 9, 14], words[order[14]], words[order[15]]);
}

#[inline(always)]
fn mix(v: &mut [u64; 16], [a, b, c, d]: [usize; 4], x: u64, y: u64) {
    v[a] = v[a].wrapping_add(v[b]).wrapping_add(x);
    v[d] = (v[d] ^ v[a]).rotate_right(32);
    v[c] = v[c].wrapping_add(v[d]);
    v[b] = (v[b] ^ v[c]).rotate_right(24);
    v[a] = v[a].wrapping_add(v[b]).wrapping_add(y);
    v[d] = (v[d] ^ v[a]).rotate_right(16);
    v[c] = v[c].wrapping_add(v[d]);
    v[b] = (v[b] ^ v[c]).rotate_right(63);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(content: &[u8]) -> String {
        digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn digests_are_blake2b() {
        // Values of Python's hashlib; a block that is just full is the case that goes wrong.
        let counted = |count: usize| (0..count).map(|n| (n % 251) as u8).collect::<Vec<_>>();
        assert_eq!(hex(b""), "cae66941d9efbd404e4d88758ea67670");
        assert_eq!(hex(b"abc"), "cf4ab791c62b8d2b2109c90275287816");
        assert_eq!(hex(&counted(128)), "a74787004ef589e31149183900d0294a");
        assert_eq!(hex(&counted(129)), "aaf1b0371f6d4ee49ee4fb5ddd9c49ef");
        assert_eq!(hex(&counted(1000)), "bca120dfd89cd95d82898473a5b01c90");
    }

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
