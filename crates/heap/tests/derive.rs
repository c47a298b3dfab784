//! Do the derive macros describe and convert types as the heap reads them, and refuse what a pool
//! cannot hold?

use core::mem::{offset_of, size_of};

use firn_heap::{
    Bytes, Checkable, Checked, Error, Field, FieldKind, Plain, Pool, PoolOptions, Ref, Refs, Sink,
    Source, Stored, Target, TypeDescriptor, Value, View,
};
use firn_mapped::{Mapped, MappedOptions};

#[derive(Stored)]
#[repr(C)]
struct Node {
    next: Ref<Node>,
    /// The node's search key.
    key: u64,
    data: [u8; 13],
    child: [Ref<Self>; 4],
    leaf: Ref<Leaf>,
    color: Checked<Color>,
    place: Place,
    corners: [Point; 2],
    grid: [[i16; 3]; 2],
    r#type: u8,
}

/// Refers to [`Node`], which refers to it.
#[derive(Stored)]
#[repr(C)]
#[firn(name = "tree leaf", version = 3)]
struct Leaf {
    up: Ref<Node>,
    text: Ref<Bytes>,
    all: Ref<Refs<Node>>,
    ratio: f32,
}

#[derive(Plain, Clone, Copy, PartialEq, Debug)]
#[repr(C)]
struct Point {
    x: i8,
    y: f64,
}

#[derive(Plain, Clone, Copy)]
#[repr(C)]
#[firn(name = "place")]
struct Place {
    at: Point,
    color: Checked<Color>,
    words: [u32; 3],
}

#[derive(Checkable, Clone, Copy, PartialEq, Debug)]
#[repr(u8)]
enum Color {
    Red,
    Green = 7,
    Blue,
}

#[derive(Stored)]
#[repr(C)]
struct Nothing {}

/// The body of an object.
struct Words(Vec<u64>);

impl Words {
    fn of<T: Stored>(value: &T, filled_with: u64) -> Self {
        let mut words = Self(vec![filled_with; T::DESCRIPTOR.size as usize / 8]);
        value.encode(&mut words);
        words
    }
}

impl Source for Words {
    fn word(&self, at: u32) -> u64 {
        assert!(at.is_multiple_of(8));
        self.0[at as usize / 8]
    }
}

impl Sink for Words {
    fn put(&mut self, at: u32, word: u64, mask: u64) {
        assert!(at.is_multiple_of(8) && word & !mask == 0);
        let old = &mut self.0[at as usize / 8];
        *old = *old & !mask | word;
    }
}

fn node() -> Node {
    let place = Place {
        at: Point { x: -3, y: 0.5 },
        color: Color::Green.into(),
        words: [1, u32::MAX, 3],
    };
    Node {
        next: Ref::null(),
        key: 0x0123_4567_89ab_cdef,
        data: *b"thirteen byte",
        child: [const { Ref::null() }; 4],
        leaf: Ref::null(),
        color: Color::Blue.into(),
        place,
        corners: [
            Point { x: 1, y: 2.0 },
            Point {
                x: i8::MIN,
                y: -0.0,
            },
        ],
        grid: [[-1, 2, -3], [i16::MIN, i16::MAX, 0]],
        r#type: 200,
    }
}

/// Name, kind, offset, element size, count and target of each field.
type Row = (&'static str, FieldKind, usize, u32, u32, &'static str);

fn rows(descriptor: &'static TypeDescriptor) -> Vec<Row> {
    let row = |f: &firn_heap::FieldDescriptor| {
        (f.name, f.kind, f.offset as usize, f.size, f.count, f.target)
    };
    descriptor.fields.iter().map(row).collect()
}

#[test]
fn a_descriptor_lists_every_field_at_its_offset() {
    use FieldKind::{Checked, Nested, Reference, Signed, Unsigned};
    let point = size_of::<Point>() as u32;
    let place = size_of::<Place>() as u32;
    let expected: Vec<Row> = vec![
        ("next", Reference, offset_of!(Node, next), 8, 1, "Node"),
        ("key", Unsigned, offset_of!(Node, key), 8, 1, ""),
        ("data", Unsigned, offset_of!(Node, data), 1, 13, ""),
        ("child", Reference, offset_of!(Node, child), 8, 4, "Node"),
        ("leaf", Reference, offset_of!(Node, leaf), 8, 1, "tree leaf"),
        ("color", Checked, offset_of!(Node, color), 4, 1, ""),
        ("place", Nested, offset_of!(Node, place), place, 1, "place"),
        (
            "corners",
            Nested,
            offset_of!(Node, corners),
            point,
            2,
            "Point",
        ),
        ("grid", Signed, offset_of!(Node, grid), 2, 6, ""),
        ("type", Unsigned, offset_of!(Node, r#type), 1, 1, ""),
    ];
    assert_eq!(rows(Node::DESCRIPTOR), expected);
}

#[test]
fn names_versions_and_sizes_are_those_of_the_attributes() {
    let (node, leaf) = (Node::DESCRIPTOR, Leaf::DESCRIPTOR);
    assert_eq!((node.name, node.version), ("Node", 1));
    assert_eq!((leaf.name, leaf.version), ("tree leaf", 3));
    assert_eq!(<Leaf as Target>::NAME, "tree leaf");
    assert_eq!(size_of::<Leaf>(), 32);
    assert_eq!(leaf.size, 32);
    assert_eq!(node.size as usize, size_of::<Node>().next_multiple_of(8));
    assert_eq!(Nothing::DESCRIPTOR.size, 0);
    assert!(Nothing::DESCRIPTOR.fields.is_empty());
}

#[test]
fn types_that_refer_to_each_other_know_each_others_names() {
    let targets: Vec<_> = Leaf::DESCRIPTOR.fields.iter().map(|f| f.target).collect();
    assert_eq!(targets, ["Node", "Bytes", "Refs<Node>", ""]);

    type Link = Ref<Aliased>;
    #[derive(Stored)]
    #[repr(C)]
    struct Aliased {
        next: Link,
    }
    assert_eq!(Aliased::DESCRIPTOR.fields[0].target, "Aliased");
}

#[test]
fn size_is_rounded_up_to_words() {
    #[derive(Stored)]
    #[repr(C)]
    struct Small {
        a: u16,
        b: u8,
    }
    assert_eq!(size_of::<Small>(), 4);
    assert_eq!(Small::DESCRIPTOR.size, 8);
    let words = Words::of(&Small { a: 0x1234, b: 0x56 }, u64::MAX);
    assert_eq!(words.0, [0xffff_ffff_ff56_1234]);
    let read = Small::decode(&words);
    assert_eq!((read.a, read.b), (0x1234, 0x56));
}

#[test]
fn constants_stand_for_their_fields() {
    const KEY: Field<Node, u64> = Node::KEY;
    const CHILD: Field<Node, [Ref<Node>; 4]> = Node::CHILD;
    assert_eq!(KEY.offset() as usize, offset_of!(Node, key));
    let second = offset_of!(Node, child) + 2 * size_of::<Ref<Node>>();
    assert_eq!(CHILD.at(2).offset() as usize, second);
    assert_eq!(Node::TYPE.offset() as usize, offset_of!(Node, r#type));
    assert_eq!(Leaf::RATIO.offset() as usize, offset_of!(Leaf, ratio));
}

#[test]
fn what_is_encoded_is_decoded() {
    let node = node();
    for filled_with in [0, u64::MAX] {
        let read = Node::decode(&Words::of(&node, filled_with));
        assert_eq!(read.key, node.key);
        assert_eq!(read.data, node.data);
        assert_eq!(read.color.get(), Some(Color::Blue));
        assert_eq!(read.place.at, node.place.at);
        assert_eq!(read.place.color.get(), Some(Color::Green));
        assert_eq!(read.place.words, node.place.words);
        assert_eq!(read.corners, node.corners);
        assert!(read.corners[1].y.is_sign_negative());
        assert_eq!(read.grid, node.grid);
        assert_eq!(read.r#type, 200);
    }
}

#[test]
fn bytes_lie_where_c_puts_them() {
    let words = Words::of(&node(), 0);
    let bytes: Vec<u8> = words.0.iter().flat_map(|w| w.to_le_bytes()).collect();
    let at = |offset: usize, len: usize| &bytes[offset..offset + len];
    assert_eq!(at(offset_of!(Node, key), 8), &node().key.to_le_bytes());
    assert_eq!(at(offset_of!(Node, data), 13), b"thirteen byte");
    let place = offset_of!(Node, place);
    assert_eq!(at(place, 1), &[(-3_i8) as u8]);
    let y = place + offset_of!(Place, at) + offset_of!(Point, y);
    assert_eq!(at(y, 8), &0.5_f64.to_le_bytes());
    assert_eq!(at(place + offset_of!(Place, color), 4), &[7, 0, 0, 0]);
    assert_eq!(at(offset_of!(Node, r#type), 1), &[200]);
}

#[test]
fn padding_is_not_written() {
    let blank = Words::of(&node(), u64::MAX);
    let gap = offset_of!(Node, data) + 13;
    assert_eq!(offset_of!(Node, child), gap + 3);
    let word = blank.word((gap & !7) as u32);
    assert_eq!(word >> ((gap & 7) * 8), 0xff_ffff);
}

#[test]
fn a_nested_structure_is_a_value_of_its_own_size() {
    assert_eq!(Point::SIZE as usize, size_of::<Point>());
    assert_eq!(<[Point; 2]>::SIZE, 2 * Point::SIZE);
    assert_eq!(Point::ALIGN, 8);
    assert_eq!((Point::KIND, Point::TARGET), (FieldKind::Nested, "Point"));
}

#[test]
fn an_invalid_number_means_no_variant() {
    let mut words = Words::of(&node(), 0);
    let at = offset_of!(Node, color);
    for (bits, expected) in [
        (0, Some(Color::Red)),
        (1, None),
        (6, None),
        (7, Some(Color::Green)),
        (8, Some(Color::Blue)),
        (9, None),
        (0x107, None),
        (u32::MAX, None),
    ] {
        bits.encode(&mut words, at as u32);
        assert_eq!(Node::decode(&words).color.get(), expected, "{bits}");
        assert_eq!(Color::from_bits(bits), expected);
    }
    for color in [Color::Red, Color::Green, Color::Blue] {
        assert_eq!(Color::from_bits(color.to_bits()), Some(color));
    }
}

fn fill(pool: &Pool<Mapped>) -> Result<(), Error> {
    pool.session()?.transaction(|tx| {
        let (first, second) = (tx.alloc(node())?, tx.alloc(node())?);
        let leaf = tx.alloc(Leaf {
            up: Ref::null(),
            text: Ref::null(),
            all: Ref::null(),
            ratio: 0.25,
        })?;
        let text = tx.alloc_bytes(b"text")?;
        first.link(Node::NEXT, Some(second));
        first.link(Node::CHILD.at(3), Some(first));
        second.link(Node::LEAF, Some(leaf));
        second.store(Node::KEY, 2);
        second.store(Node::COLOR, Color::Red.into());
        second.store(Node::CORNERS.at(1), Point { x: 9, y: 10.0 });
        leaf.link(Leaf::UP, Some(first));
        leaf.link(Leaf::TEXT, Some(text));
        tx.set_root("nothing", tx.alloc(Nothing {})?)?;
        tx.set_root("node", first)
    })
}

fn check(pool: &Pool<Mapped>) -> Result<(), Error> {
    pool.session()?.read(|view| {
        let first = view.root::<Node>("node")?;
        assert_eq!(first.load(Node::KEY), node().key);
        assert_eq!(first.load(Node::DATA), *b"thirteen byte");
        assert_eq!(first.load(Node::PLACE).words, [1, u32::MAX, 3]);
        assert_eq!(first.follow(Node::CHILD.at(3)), Some(first));
        assert_eq!(first.follow(Node::CHILD.at(0)), None);
        let second = first.follow(Node::NEXT).expect("linked");
        assert_eq!(second.load(Node::KEY), 2);
        assert_eq!(second.load(Node::COLOR).get(), Some(Color::Red));
        assert_eq!(second.load(Node::CORNERS.at(0)), Point { x: 1, y: 2.0 });
        assert_eq!(second.load(Node::CORNERS.at(1)), Point { x: 9, y: 10.0 });
        assert_eq!(second.load(Node::GRID.at(1).at(1)), i16::MAX);
        let leaf = second.follow(Node::LEAF).expect("linked");
        assert_eq!(leaf.load(Leaf::RATIO), 0.25);
        assert_eq!(leaf.follow(Leaf::UP), Some(first));
        assert!(leaf.follow(Leaf::ALL).is_none());
        let text = leaf.follow(Leaf::TEXT).expect("linked");
        assert_eq!(text.to_vec()?, b"text");
        view.root::<Nothing>("nothing")?;
        assert!(matches!(
            view.root::<Leaf>("node"),
            Err(Error::WrongType { .. })
        ));
        Ok(())
    })
}

#[test]
fn derived_types_survive_in_a_pool_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pool");
    let options = PoolOptions::new("derive");
    let medium = Mapped::create(&path, 16 << 20, &MappedOptions::default()).expect("a file");
    let pool = Pool::create(medium, &options).expect("a pool");
    fill(&pool).expect("filled");
    check(&pool).expect("sound before closing");
    pool.close().expect("closed");

    let medium = Mapped::open(&path, &MappedOptions::default()).expect("the file");
    let pool = Pool::open(medium, &options).expect("the pool");
    check(&pool).expect("sound after opening");
    fill(&pool).expect("filled with the types of the registry");
    check(&pool).expect("sound");
    pool.close().expect("closed");
}

#[test]
fn a_type_with_another_layout_under_the_same_name_is_refused() {
    #[derive(Stored)]
    #[repr(C)]
    #[firn(name = "tree leaf", version = 3)]
    struct Changed {
        up: Ref<Node>,
        text: Ref<Bytes>,
        all: Ref<Refs<Node>>,
        ratio: u32,
    }
    let medium = Mapped::anonymous(16 << 20, &MappedOptions::default()).expect("memory");
    let pool = Pool::create(medium, &PoolOptions::new("derive")).expect("a pool");
    pool.register::<Leaf>().expect("registered");
    pool.register::<Leaf>().expect("registered before");
    assert!(matches!(
        pool.register::<Changed>(),
        Err(Error::LayoutChanged { .. })
    ));
}

#[test]
fn what_a_pool_cannot_hold_does_not_compile() {
    let tests = trybuild::TestCases::new();
    tests.compile_fail("tests/compile_fail/types/*.rs");
    tests.compile_fail("tests/compile_fail/shapes/*.rs");
}

#[test]
fn what_outlives_its_operation_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/escapes/*.rs");
}
