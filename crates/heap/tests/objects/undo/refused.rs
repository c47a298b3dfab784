//! Refused logs.

use super::*;

/// A crashed pool with an open log of one batch, which saved one word.
fn open_log() -> Crash {
    let crash = Crash::new(16 << 20, Default::default());
    let at = make(&crash, PoolKind::Traced);
    let pool = Pool::open(crash.clone(), &options(PoolKind::Traced)).unwrap();
    let mut session = pool.session().unwrap();
    let image = session.raw_transaction(|tx| {
        tx.log(&[(at, 8)])?;
        tx.store(at, &3u64.to_le_bytes())?;
        Ok::<_, Error>(crash.cache_image())
    });
    drop(session);
    pool.abandon();
    Crash::from_image(&image.unwrap(), Default::default())
}

fn refusal(crash: Crash) -> String {
    let opened = Pool::open(crash, &options(PoolKind::Traced));
    opened.map(Pool::abandon).unwrap_err().to_string()
}

#[test]
fn a_mark_that_no_transaction_can_follow_is_refused() {
    for done in [MAX_VALUE, MAX_VALUE - 1] {
        let crash = open_log();
        crash.store_u64(undo_done_at(0), Seal::UndoDone.seal(done));
        let said = refusal(crash);
        assert!(said.contains("undo mark"), "{said}");

        let crash = Crash::new(16 << 20, Default::default());
        make(&crash, PoolKind::Traced);
        crash.store_u64(undo_done_at(0), Seal::UndoDone.seal(done));
        let pool = Pool::open(crash, &options(PoolKind::Traced)).unwrap();
        let mut session = pool.session().unwrap();
        let begun: Result<(), Error> = session.raw_transaction(|_| Ok(()));
        assert!(matches!(begun, Err(Error::Damaged { .. })), "{begun:?}");
    }
}

/// Data that cannot be restored is reported, not ignored.
#[test]
fn a_batch_that_is_no_sequence_of_records_is_refused() {
    let crash = open_log();
    let body = lane_at(0) + ENTRY_HEADER_WORDS as u64 * WORD_BYTES;
    crash.store_u64(body, 0);
    let word = |i: usize| crash.load_u64(lane_at(0) + i as u64 * WORD_BYTES);
    let mut header = EntryHeader::from_words(core::array::from_fn(word));
    let mut payload = vec![0; header.payload_words as usize * 8];
    crash.load_bytes(body, &mut payload);
    header.checksum = header.checksum(&payload);
    for (i, word) in (0..).zip(header.to_words()) {
        crash.store_u64(lane_at(0) + i * WORD_BYTES, word);
    }
    let said = refusal(crash);
    assert!(said.contains("log entry"), "{said}");
}
