//! Reading and writing little-endian records.

/// Appends fields to a record.
#[derive(Default)]
pub(crate) struct Writer(pub Vec<u8>);

impl Writer {
    /// An empty record with room for about this many bytes.
    pub fn with_room(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }
    pub fn u8(&mut self, v: u8) {
        self.0.push(v);
    }
    pub fn u16(&mut self, v: u16) {
        self.0.extend_from_slice(&v.to_le_bytes());
    }
    pub fn u32(&mut self, v: u32) {
        self.0.extend_from_slice(&v.to_le_bytes());
    }
    pub fn u64(&mut self, v: u64) {
        self.0.extend_from_slice(&v.to_le_bytes());
    }
    pub fn bytes(&mut self, v: &[u8]) {
        self.0.extend_from_slice(v);
    }
    /// A length-prefixed string.
    pub fn text(&mut self, v: &str) {
        self.u16(v.len() as u16);
        self.bytes(v.as_bytes());
    }
    pub fn pad_to(&mut self, len: usize) {
        assert!(self.0.len() <= len, "a record outgrew its place");
        self.0.resize(len, 0);
    }
}

/// Takes fields off a record. Returns `None` once the record is exhausted or malformed.
pub(crate) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(len)?;
        self.0 = tail;
        Some(head)
    }
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }
    pub fn u8(&mut self) -> Option<u8> {
        self.array().map(|[b]| b)
    }
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
    pub fn text(&mut self) -> Option<String> {
        let len = self.u16()? as usize;
        String::from_utf8(self.bytes(len)?.to_vec()).ok()
    }
}
