//! Did the format change? The bytes on media are written down here: two fields that trade places in both writing and
//! reading would still read back, but the format would be another.

use std::num::NonZeroU64;

use firn_format::class::Class;
use firn_format::frame::FrameUse;
use firn_format::geometry::{self, Frame, SUPERBLOCK_BYTES, SUPERBLOCKS};
use firn_format::header::{FLAG_FORWARDED, ObjectHeader, TypeId};
use firn_format::lane::{self, EntryHeader, Record};
use firn_format::plan::{self, EntriesChecksum, Entry, Phase, PlanHeader};
use firn_format::reference::{PoolId, RefWord};
use firn_format::registry::{FieldKind, FieldRecord, RecordState, TypeRecord};
use firn_format::root;
use firn_format::sealed::Seal;
use firn_format::statistics::{BLOCKS, Counter, WORDS, block_at};
use firn_format::superblock::{LogKind, OpenState, PoolKind, StoredDomain, Superblock};
use firn_units::VirtAddr;

/// Bytes from hexadecimal digits, with spaces wherever they help.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16).unwrap() as u8)
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

fn superblock() -> Superblock {
    Superblock {
        version: 2,
        generation: 0x0102_0304_0506,
        uuid: *b"0123456789abcdef",
        pool_id: PoolId(0xcafe),
        kind: PoolKind::Explicit,
        log: LogKind::Redo,
        domain: StoredDomain::Process,
        state: OpenState::Open,
        boot_id: *b"ABCDEFGHIJKLMNOP",
        lanes: 0x40,
        layout: "golden".into(),
        limit_bytes: NonZeroU64::new(0x1122_3344),
    }
}

#[test]
fn a_superblock_lies_as_written_down() {
    let front = hex("4649524e504f4f4c 02000000 40000000 0605040302010000
         30313233343536373839616263646566 4142434445464748494a4b4c4d4e4f50
         feca 02 01 03 02 0600 676f6c64656e 4433221100000000");
    let bytes = superblock().encode();
    assert_eq!(bytes[..front.len()], front);
    let check = bytes.len() - 8;
    assert!(bytes[front.len()..check].iter().all(|&byte| byte == 0));
    assert_eq!(bytes[check..], 0xd254be6cd32867c3_u64.to_le_bytes());
    assert_eq!(Superblock::decode(&bytes, SUPERBLOCKS[0]), Ok(superblock()));
    assert_eq!(
        (SUPERBLOCK_BYTES, SUPERBLOCKS.map(VirtAddr::bytes)),
        (192, [0, 4096])
    );
}

/// The number of each choice, written down individually.
#[test]
fn choices_have_their_numbers() {
    assert_eq!([PoolKind::Traced as u8, PoolKind::Explicit as u8], [1, 2]);
    assert_eq!([LogKind::Redo as u8, LogKind::Undo as u8], [1, 2]);
    let states = [
        OpenState::Closed,
        OpenState::Open,
        OpenState::ClosedUntraced,
    ];
    assert_eq!(states.map(|state| state as u8), [1, 2, 3]);
    let domains = [StoredDomain::Adr, StoredDomain::Eadr, StoredDomain::Process];
    assert_eq!(domains.map(|domain| domain as u8), [1, 2, 3]);
    let records = [
        RecordState::Current,
        RecordState::Migrating,
        RecordState::Migrated,
    ];
    assert_eq!(records.map(|state| state as u8), [1, 2, 3]);
    let kinds = [
        FieldKind::Unsigned,
        FieldKind::Signed,
        FieldKind::Float,
        FieldKind::Reference,
        FieldKind::Checked,
        FieldKind::Nested,
        FieldKind::Pairs,
    ];
    assert_eq!(kinds.map(|kind| kind as u8), [1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn an_entry_of_a_lane_lies_as_written_down() {
    let mut payload = Vec::new();
    Record::push_line(
        &mut payload,
        VirtAddr(0x1240),
        0b1000_0010,
        &[0, 11, 2, 3, 4, 5, 6, 77],
    );
    Record::push_bits(&mut payload, VirtAddr(0x48), 6, 1);
    Record::push_range(&mut payload, VirtAddr(0x100), &[21, 22, 23]);
    let expected = [
        0x0082_0000_0000_1241,
        11,
        77,
        0x4a,
        6,
        1,
        0x0003_0000_0000_0103,
        21,
        22,
        23,
    ];
    assert_eq!(payload, expected);
    let header = EntryHeader {
        lsn: 0x1111,
        watermark: 0x2222,
        payload_words: payload.len() as u64,
        extents: 3,
        checksum: 0x4444,
    };
    assert_eq!(
        header.to_words(),
        [0x1111, 0x2222, 0x0003_0000_0000_000a, 0x4444]
    );
    assert_eq!(EntryHeader::from_words(header.to_words()), header);
    assert_eq!(
        header.checksum(bytemuck::cast_slice(&payload)),
        0xabd6b00b14c6f37f
    );
    let places = [lane::lane_at(1), lane::slot_at(1, 2), lane::undo_done_at(1)];
    assert_eq!(
        places.map(VirtAddr::bytes),
        [0x20_8000, 0x20_9f80, 0x20_fe00]
    );
}

#[test]
fn a_plan_lies_as_written_down() {
    let header = PlanHeader {
        entries: 3,
        units: 40,
        scheme: 2,
        checksum: 5,
    };
    assert_eq!(
        header.to_words(),
        [3, 40, 2, 5, 0xe23c5b962ce2dbdd, 0, 0, 0]
    );
    let entry = Entry {
        source: Frame(0x4000),
        class: Class::from_index(8),
        first: Frame(0x7777),
        first_slot: 25,
        split: 3,
        second: Frame(0x7778),
        unit: 99,
        survivors: [0xb2, 0, 1 << 63, 4],
    };
    let words = entry.to_words();
    let expected = [
        0x0000_0800_0000_4000,
        0x0000_1900_0000_7777,
        0x0000_0300_0000_7778,
        99,
        0xb2,
        0,
        1 << 63,
        4,
    ];
    assert_eq!(words, expected);
    let large = Entry {
        class: None,
        ..entry
    };
    assert_eq!(large.to_words()[0] >> 40, 0x80);
    let mut checksum = EntriesChecksum::default();
    checksum.update(&words[..3]);
    checksum.update(&words[3..]);
    assert_eq!(checksum.value(), plan::entries_checksum(&words));
    assert_eq!(checksum.value(), 0xdfe933aae02dc18c);
    let plan = Frame(0x100);
    let places = [
        PlanHeader::entry_at(plan, 1),
        PlanHeader::before_at(plan),
        header.settled_at(plan),
    ];
    assert_eq!(
        places.map(VirtAddr::bytes),
        [0x10_0080, 0x10_0038, 0x10_0100]
    );
    let phases = [
        Phase::Idle,
        Phase::Active(Frame(12)),
        Phase::Release(Frame(13)),
    ];
    assert_eq!(phases.map(Phase::to_value), [0, 0xc1, 0xd2]);
}

/// The header's checksum covers every word of it; a changed checksum is noticed, too.
#[test]
fn every_word_of_a_plan_header_counts() {
    let header = PlanHeader {
        entries: 3,
        units: 40,
        scheme: 2,
        checksum: 5,
    };
    for word in 0..5 {
        let mut words = header.to_words();
        words[word] ^= 1;
        assert!(
            PlanHeader::from_words(&words, VirtAddr(0)).is_err(),
            "word {word}"
        );
    }
}

#[test]
fn a_type_record_lies_as_written_down() {
    let record = TypeRecord {
        id: TypeId(17),
        state: RecordState::Migrating,
        name: "node".into(),
        version: 3,
        size: 40,
        fields: vec![FieldRecord {
            name: "next".into(),
            kind: FieldKind::Reference,
            offset: 24,
            size: 8,
            count: 2,
            target: "node".into(),
            layout: 0,
        }],
    };
    let body = hex("11000000 02 03000000 28000000 0400 6e6f6465 01000000
         0400 6e657874 04 18000000 08000000 02000000 0400 6e6f6465");
    let bytes = record.encode();
    assert_eq!(bytes[..8], (bytes.len() as u64).to_le_bytes());
    assert_eq!(bytes[8..16], 0x6e48f04606c024ce_u64.to_le_bytes());
    assert_eq!(bytes[16..][..body.len()], body);
    assert!(bytes[16 + body.len()..].iter().all(|&byte| byte == 0));
    assert!(bytes.len().is_multiple_of(16) && bytes.len() < 32 + body.len());
}

#[test]
fn words_lie_as_written_down() {
    let class = Class::from_index(8).unwrap();
    let frames = [
        FrameUse::Free,
        FrameUse::Slots(class),
        FrameUse::Large { frames: 7 },
        FrameUse::Log,
        FrameUse::Tail { back: 5 },
        FrameUse::Plan,
        FrameUse::Kept,
    ];
    let value = |word: u64| word & firn_format::sealed::MAX_VALUE;
    let values = frames.map(|what| value(what.to_word()));
    assert_eq!(values, [0, 0x81, 0x72, 3, 0x54, 5, 6]);
    assert_eq!(value(FrameUse::Slots(class).to_reserved_word()), 0x89);
    assert_eq!(FrameUse::Slots(class).to_word(), 0x9710_0000_0000_0081);
    assert_eq!(Frame(0x1234).word_at().bytes(), 0x42_d1a0);
    assert_eq!(Frame(0x1234).bitmap_at().bytes(), 0x42_e680);
    let seals = [
        Seal::Watermark,
        Seal::Phase,
        Seal::RegistryEnd,
        Seal::UndoDone,
        Seal::Frame,
        Seal::Length,
        Seal::Frontier,
        Seal::Kept,
        Seal::KeptBefore,
    ];
    let sealed = seals.map(|seal| seal.seal(1));
    let expected = [
        0x7450_0000_0000_0001,
        0xbde0_0000_0000_0001,
        0xf900_0000_0000_0001,
        0x0d70_0000_0000_0001,
        0xd710_0000_0000_0001,
        0xd770_0000_0000_0001,
        0x08d0_0000_0000_0001,
        0x03b0_0000_0000_0001,
        0xef10_0000_0000_0001,
    ];
    assert_eq!(sealed, expected);
    let header = ObjectHeader::new(TypeId(0x12345), 0xabcdef).with_flags(FLAG_FORWARDED);
    assert_eq!(header.with_scratch(0x6789).0, 0xabcd_ef67_8911_2345);
    let built_in = [TypeId::NONE, TypeId::BYTES, TypeId::REFS, TypeId::RAW];
    assert_eq!(built_in.map(|id| id.0), [0, 1, 2, 3]);
    let reference = RefWord::new(PoolId(0xcafe), VirtAddr(0x1234_5670)).with_tag(9);
    assert_eq!(reference.0, 0xcafe_0000_1234_5679);
}

#[test]
fn a_root_lies_as_written_down() {
    let words = root::encode("roots", 0x77);
    assert_eq!(words[..5], [0x7374_6f6f_72, 0, 0, 0, 0]);
    assert_eq!(words[5..], [0x6fbd9a82a4d42e7e, 0x77, 0]);
    assert_eq!(root::root_at(3).bytes(), geometry::ROOTS.0 + 192);
}

/// Each counter has its own word.
#[test]
fn a_block_of_statistics_lies_as_written_down() {
    let single = [
        Counter::Objects,
        Counter::LiveBytes,
        Counter::LiveFrames,
        Counter::LiveChunks,
        Counter::Commits,
        Counter::Aborts,
        Counter::Stops,
        Counter::Starved,
        Counter::Cycles,
        Counter::MovedObjects,
        Counter::MovedBytes,
        Counter::EmptiedFrames,
        Counter::FilledFrames,
        Counter::Reclaimed,
        Counter::ReleasedBytes,
    ];
    assert!(single.into_iter().map(Counter::word).eq(0..15));
    let steps = [
        Counter::StepNs(0),
        Counter::StepNs(3),
        Counter::StepCpuNs(0),
        Counter::StepCpuNs(3),
    ];
    assert_eq!(steps.map(Counter::word), [16, 19, 20, 23]);
    let stops = [
        Counter::StoodNs,
        Counter::LongestStopNs,
        Counter::StopBucket(0),
        Counter::StopBucket(35),
        Counter::StopBucket(99),
    ];
    assert_eq!(stops.map(Counter::word), [24, 25, 28, 63, 63]);
    let objects = [
        Counter::ClassObjects(0),
        Counter::ClassObjects(128),
        Counter::TypeObjects(0),
        Counter::TypeBytes(0),
        Counter::TypeObjects(119),
        Counter::TypeBytes(500),
    ];
    assert_eq!(objects.map(Counter::word), [64, 192, 193, 194, 431, 432]);
    assert_eq!((WORDS, BLOCKS), (433, 65));
    let blocks = [block_at(0), block_at(1), block_at(64)].map(VirtAddr::bytes);
    assert_eq!(
        blocks,
        [
            geometry::STATISTICS.0,
            geometry::STATISTICS.0 + 4096,
            geometry::STATISTICS.0 + 64 * 4096
        ]
    );
}

/// The addresses of a pool's parts.
#[test]
fn the_first_chunks_lie_as_written_down() {
    let places = [
        geometry::STATE,
        geometry::WATERMARK,
        geometry::PHASE,
        geometry::REGISTRY_END,
        geometry::LENGTH,
        geometry::ROOTS,
        geometry::REGISTRY,
        geometry::STATISTICS,
        geometry::LANES_START,
    ];
    assert_eq!(
        places.map(VirtAddr::bytes),
        [
            0x2000, 0x2000, 0x2008, 0x2040, 0x2080, 0x4000, 0x1_0000, 0x10_0000, 0x20_0000,
        ]
    );
    assert_eq!(geometry::FIRST_DATA_CHUNK, 7);
}
