//! Is stored content still there after a close and after a kill?

use firn_mapped::{Backing, Mapped, MappedOptions};
use firn_media::{Domain, MediumExt, Memory, Space};
use firn_units::{CHUNK_BYTES, FRAME_BYTES, VirtAddr};

use crate::support;

const DOMAINS: [Domain; 3] = [Domain::Adr, Domain::Eadr, Domain::Process];

#[test]
fn stores_persist_across_a_reopen() {
    for domain in DOMAINS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pool");
        let options = support::unlogged().domain(domain);
        let medium = support::named(&path, 3 * CHUNK_BYTES, &options);
        assert_eq!(medium.domain(), domain);
        medium.store_u64(VirtAddr(CHUNK_BYTES), 7);
        medium.persist(VirtAddr(CHUNK_BYTES), 8);
        medium.store_bytes(VirtAddr(64), b"seventeen bytes..");
        medium.persist(VirtAddr(64), 17);
        assert!(
            medium.durable() >= medium.commit(),
            "a commit is durable at once"
        );
        medium.sync().unwrap();
        drop(medium);
        let medium = Mapped::open(&path, &options).unwrap();
        assert_eq!(medium.len(), 3 * CHUNK_BYTES);
        assert_eq!(medium.load_u64(VirtAddr(CHUNK_BYTES)), 7);
        let mut bytes = [0; 18];
        medium.load_bytes(VirtAddr(64), &mut bytes);
        assert_eq!(&bytes, b"seventeen bytes..\0");
    }
}

#[test]
fn a_new_file_survives_as_much_as_its_device_can() {
    let options = MappedOptions::default();
    let asked = options.clone().domain(Domain::Process);
    let disk = tempfile::tempdir().unwrap();
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    for (folder, backing, options, domain) in [
        (&disk, Backing::Disk, &options, Domain::Logged),
        (&disk, Backing::Disk, &asked, Domain::Process),
        (&memory, Backing::Tmpfs, &options, Domain::Process),
    ] {
        let medium = Mapped::create(folder.path().join("pool"), 1, options).unwrap();
        assert_eq!((medium.domain(), medium.backing()), (domain, backing));
        assert_eq!(medium.len(), FRAME_BYTES);
    }
    let medium = Mapped::anonymous(0, &options).unwrap();
    assert_eq!(medium.backing(), Backing::Anonymous);
    assert!(medium.is_empty());
}

#[test]
fn a_killed_process_loses_nothing_it_stored() {
    const NAME: &str = "persistence::a_killed_process_loses_nothing_it_stored";
    if let Some(path) = support::child_pool() {
        let medium = Mapped::open(path, &support::unlogged()).unwrap();
        for count in 1.. {
            medium.store_u64(VirtAddr(0), count);
            medium.store_u64(VirtAddr(FRAME_BYTES), count);
            if count == 100_000 {
                println!("\nstoring");
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    drop(support::named(&path, 2 * FRAME_BYTES, &support::unlogged()));
    let mut child = support::start_until(support::child(NAME, &path), "storing");
    child.kill().unwrap();
    child.wait().unwrap();
    let medium = Mapped::open(&path, &support::unlogged()).unwrap();
    let (first, second) = (
        medium.load_u64(VirtAddr(0)),
        medium.load_u64(VirtAddr(FRAME_BYTES)),
    );
    assert!(second >= 100_000);
    assert!(
        first == second || first == second + 1,
        "{first} before {second}"
    );
}
