//! Results of calls.

use core::cell::RefCell;
use core::ffi::{c_char, c_void};
use core::ptr;
use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};

use firn_heap::{Error, OpenError};
use firn_mapped::MappedError;
use firn_media::MediumError;

/// `firn_status`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    Ok = 0,
    Invalid,
    Misuse,
    NotFound,
    Exists,
    InUse,
    Permission,
    Io,
    NoSpace,
    TooLarge,
    NotAllocated,
    WrongType,
    Conflict,
    Busy,
    ReadOnly,
    NotAPool,
    NeedsRecovery,
    Damaged,
    Aborted,
    Internal,
    Forked,
}

const NAMES: [&core::ffi::CStr; 21] = [
    c"FIRN_OK",
    c"FIRN_INVALID",
    c"FIRN_MISUSE",
    c"FIRN_NOT_FOUND",
    c"FIRN_EXISTS",
    c"FIRN_IN_USE",
    c"FIRN_PERMISSION",
    c"FIRN_IO",
    c"FIRN_NO_SPACE",
    c"FIRN_TOO_LARGE",
    c"FIRN_NOT_ALLOCATED",
    c"FIRN_WRONG_TYPE",
    c"FIRN_CONFLICT",
    c"FIRN_BUSY",
    c"FIRN_READ_ONLY",
    c"FIRN_NOT_A_POOL",
    c"FIRN_NEEDS_RECOVERY",
    c"FIRN_DAMAGED",
    c"FIRN_ABORTED",
    c"FIRN_INTERNAL",
    c"FIRN_FORKED",
];

/// Why a call failed: one word, so that a call's result is returned in registers.
#[derive(Clone, Debug)]
pub(crate) struct Failure(Box<(Status, String)>);

impl Failure {
    #[cold]
    pub(crate) fn new(status: Status, message: impl Into<String>) -> Self {
        Self(Box::new((status, message.into())))
    }

    pub(crate) fn status(&self) -> Status {
        self.0.0
    }

    pub(crate) fn message(&self) -> &str {
        &self.0.1
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Status::Invalid, message)
    }

    pub(crate) fn misuse(message: impl Into<String>) -> Self {
        Self::new(Status::Misuse, message)
    }
}

/// The result of a call's body.
pub(crate) type Outcome<R> = Result<R, Failure>;

impl From<Error> for Failure {
    #[cold]
    fn from(error: Error) -> Self {
        let status = match &error {
            Error::PoolFull { .. } => Status::NoSpace,
            Error::ObjectTooLarge { .. }
            | Error::TransactionTooLarge { .. }
            | Error::TooManySessions { .. }
            | Error::TooManyRoots { .. }
            | Error::RegistryFull { .. } => Status::TooLarge,
            Error::Trigger { .. }
            | Error::RootName { .. }
            | Error::BadType { .. }
            | Error::BadRange { .. } => Status::Invalid,
            Error::NotAllocated { .. } => Status::NotAllocated,
            Error::NoRoot { .. } => Status::NotFound,
            Error::WrongType { .. }
            | Error::LayoutChanged { .. }
            | Error::NeedsMigration { .. }
            | Error::NewerType { .. }
            | Error::MigrationUnfinished { .. } => Status::WrongType,
            Error::WrongKind { .. } | Error::NotLogged { .. } | Error::Closed | Error::OwnLock => {
                Status::Misuse
            }
            Error::Forked { .. } => Status::Forked,
            Error::ReadOnly => Status::ReadOnly,
            Error::Conflict => Status::Conflict,
            Error::Busy { .. }
            | Error::Collecting
            | Error::SessionsOpen { .. }
            | Error::Migrating
            | Error::HandleInTheWay { .. } => Status::Busy,
            Error::Damaged { .. } | Error::Format(_) => Status::Damaged,
            Error::Medium(medium) => of_medium(medium),
            _ => Status::Internal,
        };
        Self::new(status, error.to_string())
    }
}

fn of_medium(error: &MediumError) -> Status {
    match error {
        MediumError::NoSpace { .. } => Status::NoSpace,
        MediumError::Exists { .. } => Status::Exists,
        MediumError::CopyIsOpen { .. } => Status::InUse,
        _ => Status::Io,
    }
}

impl From<OpenError> for Failure {
    #[cold]
    fn from(error: OpenError) -> Self {
        let status = match &error {
            OpenError::Format { .. } | OpenError::Layout { .. } => Status::NotAPool,
            OpenError::TooShort { .. } | OpenError::MachineDied { .. } => Status::Damaged,
            OpenError::NeedsRecovery { .. } => Status::NeedsRecovery,
            OpenError::ReadOnly { .. } => Status::ReadOnly,
            OpenError::Option { .. } => Status::Invalid,
            OpenError::Medium(medium) => of_medium(medium),
            OpenError::Recovery { .. } => Status::Damaged,
            _ => Status::Internal,
        };
        Self::new(status, error.to_string())
    }
}

impl From<MappedError> for Failure {
    #[cold]
    fn from(error: MappedError) -> Self {
        let status = match &error {
            MappedError::NotFound { .. } => Status::NotFound,
            MappedError::Exists { .. } | MappedError::BeingCreated { .. } => Status::Exists,
            MappedError::InUse { .. } => Status::InUse,
            MappedError::NoPromise { .. } => Status::Invalid,
            MappedError::IsDirectory { .. }
            | MappedError::NotRegular { .. }
            | MappedError::BadLength { .. } => Status::NotAPool,
            MappedError::Permission { .. } => Status::Permission,
            MappedError::NoAddressSpace { .. } => Status::TooLarge,
            MappedError::Space(medium) => of_medium(medium),
            _ => Status::Io,
        };
        Self::new(status, error.to_string())
    }
}

struct Last {
    status: Status,
    message: CString,
}

thread_local! {
    static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
}

#[cold]
fn tell(failure: Failure) -> Status {
    let (status, message) = *failure.0;
    // A name in it may hold zeros; at the end of a thread there is no reader left.
    let message = CString::new(message.replace('\0', "\u{fffd}")).unwrap_or_default();
    let _ = LAST.try_with(|last| *last.borrow_mut() = Some(Last { status, message }));
    status
}

/// Runs a call's body. No panic leaves it: a panic is a failure of the library itself.
#[inline(always)]
fn run<R>(call: impl FnOnce() -> Outcome<R>) -> Result<R, Status> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(failure)) => Err(tell(failure)),
        Err(payload) => Err(tell(of_panic(&*payload))),
    }
}

#[cold]
fn of_panic(payload: &(dyn core::any::Any + Send)) -> Failure {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
    Failure::new(
        Status::Internal,
        format!(
            "internal error of the library: {}",
            text.unwrap_or("unknown reason")
        ),
    )
}

/// Runs a call that returns a status.
#[inline(always)]
pub(crate) fn status_of(call: impl FnOnce() -> Outcome<()>) -> Status {
    match run(call) {
        Ok(()) => Status::Ok,
        Err(status) => status,
    }
}

/// Runs a call that returns a value, or `otherwise` if it fails.
#[inline(always)]
pub(crate) fn result_of<R>(otherwise: R, call: impl FnOnce() -> Outcome<R>) -> R {
    run(call).unwrap_or(otherwise)
}

/// Runs a call that returns an object.
#[inline(always)]
pub(crate) fn object_of(call: impl FnOnce() -> Outcome<*const c_void>) -> *const c_void {
    result_of(ptr::null(), call)
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_last_status() -> Status {
    let status = |last: &Option<Last>| last.as_ref().map_or(Status::Ok, |last| last.status);
    LAST.try_with(|last| status(&last.borrow()))
        .unwrap_or(Status::Ok)
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_last_message() -> *const c_char {
    let message = |last: &Option<Last>| {
        last.as_ref()
            .map_or(c"".as_ptr(), |last| last.message.as_ptr())
    };
    LAST.try_with(|last| message(&last.borrow()))
        .unwrap_or(c"".as_ptr())
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_clear_status() {
    let _ = LAST.try_with(|last| *last.borrow_mut() = None);
}

/// Takes a number, not a [`Status`]: a program may pass any.
#[unsafe(no_mangle)]
pub extern "C" fn firn_status_name(status: u32) -> *const c_char {
    let name = NAMES.get(status as usize);
    name.map_or(c"no status".as_ptr(), |name| name.as_ptr())
}

#[unsafe(no_mangle)]
pub extern "C" fn firn_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
