/*
 * Firn for C++20: a thin layer over firn.h, whose comments describe durability.
 *
 *     struct node {
 *         static constexpr auto firn_name = "node";
 *         firn::ptr<node> next;
 *         std::int64_t data;
 *     };
 *
 *     firn::pool pool = firn::pool::open_or_create("list.firn");
 *     firn::session session(pool);
 *     session.transaction([](firn::transaction &tx) {
 *         firn::obj<node> first = tx.make(node{{}, 7});
 *         tx.set_root("list", first);
 *     });
 *     firn::reading reading(session);
 *     for (auto node = reading.root<struct node>("list"); node; node = reading.follow(node->next))
 *         std::cout << node->data << '\n';
 *
 * Types. An object's type is trivially copyable, has a standard layout and at most 8 bytes of alignment, and has a name
 * by which the pool knows it: firn_name, and firn_version if that is not 1. Its references are firn::ptr<T>, alone, in
 * arrays (T[N] or std::array, which are described alike), or in a nested structure. They are found automatically if the
 * type is an aggregate of at most 64 members without base classes and bit-fields; otherwise FIRN_REFERENCES names them.
 * The compiler rejects what cannot be stored.
 * When a type is first used, it is compared with the pool, together with all types that its references lead to: kind,
 * offset and size of their members if these were found, but not their names. A changed type needs a higher version and
 * a migration (pool::migrate). Two instances of a template need two names.
 *
 * Operations. A reading or a transaction is open from its beginning to the end of its scope, on one thread. An obj<T> is
 * valid that long: a program without NDEBUG that uses it longer is stopped, with a message that says where the operation
 * ended. In a transaction that has stored to an object, `->` shows its old content, get() its new content.
 *
 * Failures are exceptions, firn::error, except for lookups that find nothing. An exception that leaves a transaction
 * rolls it back.
 */
#ifndef FIRN_HPP
#define FIRN_HPP

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "firn.h"
#include "firn/types.hpp"

namespace firn
{

/* A failed call: its message, and its status as named by firn.h. */
class error : public std::runtime_error
{
public:
	explicit error(firn_status status, const char *message = firn_last_message())
		: std::runtime_error(message), status_(status)
	{
	}

	firn_status status() const noexcept
	{
		return status_;
	}

private:
	firn_status status_;
};

namespace detail
{

/* The caller's location, as a default argument. */
struct place {
	const char *file;
	unsigned line;
	const char *function;

	static constexpr place here(const char *file = __builtin_FILE(), unsigned line = __builtin_LINE(),
				    const char *function = __builtin_FUNCTION())
	{
		return {file, line, function};
	}
};

inline void check(firn_status status)
{
	if (status != FIRN_OK)
		throw error(status);
}

/* The object that a call returns; none means that it failed. */
inline const void *checked(const void *object)
{
	if (object == nullptr)
		throw error(firn_last_status());
	return object;
}

#ifdef NDEBUG
/* An operation's objects do not know it. */
class tether
{
};
#else
/* What an operation's objects ask whether it is open, and where it ended. */
struct life {
	bool is_open = true;
	place begun;
};

class tether
{
public:
	tether() = default;
	explicit tether(std::shared_ptr<const life> life) : life_(std::move(life))
	{
	}

	void check() const
	{
		if (life_ == nullptr || life_->is_open)
			return;
		std::fprintf(stderr,
			     "firn: an object is used after its operation has ended: that of %s, line %u, in %s\n",
			     life_->begun.file, life_->begun.line, life_->begun.function);
		std::abort();
	}

private:
	std::shared_ptr<const life> life_;
};
#endif

} // namespace detail

/* ------------------------------------------------------------------------------------------------------ objects */

/* An object in an operation, or none. */
template <class T> class obj
{
public:
	obj() = default;
	obj(std::nullptr_t) noexcept
	{
	}
	obj(const void *at, detail::tether tether) : at_(static_cast<const T *>(at)), tether_(std::move(tether))
	{
	}

	explicit operator bool() const noexcept
	{
		return at_ != nullptr;
	}

	/* The bytes in place: in a transaction, without its stores. */
	const T *operator->() const
	{
		return address();
	}

	const T &operator*() const
	{
		return *address();
	}

	const T *address() const
	{
#ifndef NDEBUG
		tether_.check();
		if (at_ == nullptr) {
			std::fprintf(stderr, "firn: an empty obj is used\n");
			std::abort();
		}
#endif
		return at_;
	}

	/* As above, but null for none. */
	const T *address_or_null() const
	{
		return at_ == nullptr ? nullptr : address();
	}

	bool operator==(const obj &other) const
	{
		return at_ == other.at_;
	}

private:
	const T *at_ = nullptr;
	[[no_unique_address]] detail::tether tether_;
};

/* ------------------------------------------------------------------------------------------------------ pools */

/* An open pool, closed when it goes out of scope. Sessions and handles must be gone by then. */
class pool
{
public:
	static pool create(const char *path, const firn_options &options = {})
	{
		pool made;
		detail::check(firn_create(path, &options, &made.pool_));
		return made;
	}

	static pool open(const char *path, const firn_options &options = {})
	{
		pool made;
		detail::check(firn_open(path, &options, &made.pool_));
		return made;
	}

	static pool open_read_only(const char *path, const firn_options &options = {})
	{
		pool made;
		detail::check(firn_open_read_only(path, &options, &made.pool_));
		return made;
	}

	static pool open_or_create(const char *path, const firn_options &options = {})
	{
		pool made;
		firn_status status = firn_open(path, &options, &made.pool_);
		if (status == FIRN_NOT_FOUND)
			status = firn_create(path, &options, &made.pool_);
		detail::check(status);
		return made;
	}

	/* Makes a new, closed pool in a file from the intact objects of one that was open on an ordinary file when the machine
	 * went down; see firn_salvage. `lost` receives a sentence for each loss. */
	static firn_salvaged salvage(const char *path, const char *new_path, const firn_options &options = {},
				     std::vector<std::string> *lost = nullptr)
	{
		firn_salvaged salvaged = {};
		detail::check(firn_salvage(
			path, new_path, &options,
			[](const char *what, void *context) {
				if (context != nullptr)
					static_cast<std::vector<std::string> *>(context)->emplace_back(what);
			},
			lost, &salvaged));
		return salvaged;
	}

	/* In memory that ends with the process. */
	static pool in_memory(const firn_options &options = {})
	{
		return create(nullptr, options);
	}

	pool(pool &&other) noexcept : pool_(std::exchange(other.pool_, nullptr))
	{
	}

	pool &operator=(pool &&other) noexcept
	{
		std::swap(pool_, other.pool_);
		return *this;
	}

	~pool()
	{
		/* A forked child ends while it still holds its parent's pools. */
		firn_status closed = firn_close(pool_);
		if (closed != FIRN_OK && closed != FIRN_FORKED)
			std::fprintf(stderr, "firn: a pool was not closed: %s\n", firn_last_message());
	}

	/* As above, but reports what prevents closing. */
	void close()
	{
		detail::check(firn_close(pool_));
		pool_ = nullptr;
	}

	/* Its maximum size in bytes; none if only its capacity limits it. */
	std::optional<std::uint64_t> limit() const
	{
		std::uint64_t bytes = firn_limit(pool_);
		return bytes == 0 ? std::nullopt : std::optional<std::uint64_t>(bytes);
	}

	void sync()
	{
		detail::check(firn_sync(pool_));
	}

	/* Waits until everything up to a ticket is durable (firn_wait_durable). */
	void wait_durable(firn_ticket ticket)
	{
		detail::check(firn_wait_durable(pool_, ticket));
	}

	/* Calls when everything up to a ticket is durable, with FIRN_OK, or FIRN_IO if it never will be (firn_when_durable). */
	void when_durable(firn_ticket ticket, std::function<void(firn_status)> call)
	{
		auto *with = new std::function<void(firn_status)>(std::move(call));
		firn_status asked = firn_when_durable(
			pool_, ticket,
			[](void *given, firn_status status) {
				std::unique_ptr<std::function<void(firn_status)>> taken(
					static_cast<std::function<void(firn_status)> *>(given));
				(*taken)(status);
			},
			with);
		if (asked != FIRN_OK)
			delete with;
		detail::check(asked);
	}

	/* The ticket of all commits so far (firn_newest_ticket). */
	firn_ticket newest_ticket() const
	{
		return firn_newest_ticket(pool_);
	}

	/* The ticket up to which everything is durable (firn_durable_ticket). */
	firn_ticket durable_ticket() const
	{
		return firn_durable_ticket(pool_);
	}

	/* Converts every object of type Old to type New with `convert`, called with a const Old & (firn_migrate).
	 * Both types have the same name, New the higher version. Pass references on as ptr<New>::of(old.next.ref()).
	 * `convert` must not throw. Returns the number of objects. */
	template <class Old, class New, class F> std::uint64_t migrate(F &&convert)
	{
		std::uint64_t objects = 0;
		auto call = [](const void *from, void *to, void *argument) noexcept {
			Old old;
			std::memcpy(static_cast<void *>(&old), from, sizeof old);
			New made = (*static_cast<std::remove_reference_t<F> *>(argument))(std::as_const(old));
			std::memcpy(to, static_cast<const void *>(&made), sizeof made);
		};
		void *argument = const_cast<void *>(static_cast<const void *>(std::addressof(convert)));
		detail::check(firn_migrate(pool_, detail::type<Old>(), detail::type<New>(), call, argument, &objects));
		return objects;
	}

	/* Starts and ends a thread that keeps the pool compact (FFCCD, section 5). */
	void start_collecting(const firn_collecting &how = {})
	{
		detail::check(firn_init(pool_, &how));
	}

	void stop_collecting()
	{
		detail::check(firn_exit(pool_));
	}

	firn_collected collect(const firn_collecting &how = {})
	{
		firn_collected collected;
		detail::check(firn_collect(pool_, &how, &collected));
		return collected;
	}

	double ratio(firn_pages pages = FIRN_HUGE_PAGES)
	{
		return firn_ratio(pool_, pages);
	}

	/* The problems found in the pool, a sentence each. */
	std::vector<std::string> check()
	{
		std::vector<std::string> found;
		auto finding = [](std::uint64_t, const char *what, void *argument) {
			static_cast<std::vector<std::string> *>(argument)->emplace_back(what);
		};
		detail::check(firn_check(pool_, finding, &found, nullptr));
		return found;
	}

	firn_pool *get() const noexcept
	{
		return pool_;
	}

private:
	pool() = default;

	firn_pool *pool_ = nullptr;
};

class transaction;

/* A thread's access to a pool. It stays on its thread. */
class session
{
public:
	explicit session(pool &pool)
	{
		detail::check(firn_session_open(pool.get(), &session_));
	}

	session(const session &) = delete;
	session &operator=(const session &) = delete;

	~session()
	{
		firn_status closed = firn_session_close(session_);
		if (closed != FIRN_OK && closed != FIRN_FORKED)
			std::fprintf(stderr, "firn: a session was not closed: %s\n", firn_last_message());
	}

	/* Runs `body` in a transaction, which is durable on return. An exception rolls it back and propagates. It restarts if
	 * two transactions wait for each other: effects of `body` outside the pool must be safe to repeat. */
	template <class Body>
	auto transaction(Body &&body, detail::place here = detail::place::here());

	firn_session *get() const noexcept
	{
		return session_;
	}

private:
	firn_session *session_ = nullptr;
};

/* The name of a root, for operations that look the root up often. Any thread may use it. */
class root_name
{
public:
	/* Fails for a name that no root can have. */
	explicit root_name(const char *name) : name_(firn_root_name_new(name))
	{
		if (name_ == nullptr)
			throw error(firn_last_status());
	}

	root_name(const root_name &) = delete;
	root_name &operator=(const root_name &) = delete;

	~root_name()
	{
		firn_root_name_drop(name_);
	}

	const firn_root_name *get() const noexcept
	{
		return name_;
	}

private:
	firn_root_name *name_;
};

namespace detail
{

/* Common to both kinds of operation. */
class operation
{
public:
	operation(const operation &) = delete;
	operation &operator=(const operation &) = delete;

	/* The object that a reference names, or none. */
	template <class T> obj<T> follow(const ptr<T> &reference) const
	{
		return object<T>(firn_follow(session_, &reference.ref()));
	}

	/* The object of a root; none if there is no such root. Fails if it has another type. */
	template <class T> obj<T> root(const char *name) const
	{
		firn_clear_status();
		const void *found = firn_root(session_, name, type<T>());
		if (found == nullptr && firn_last_status() != FIRN_NOT_FOUND)
			throw error(firn_last_status());
		return object<T>(found);
	}

	/* As above, for a root_name. */
	template <class T> obj<T> root(const root_name &name) const
	{
		firn_clear_status();
		const void *found = firn_root_named(session_, name.get(), type<T>());
		if (found == nullptr && firn_last_status() != FIRN_NOT_FOUND)
			throw error(firn_last_status());
		return object<T>(found);
	}

	/* A copy of an object as the operation sees it. */
	template <class T> T get(const obj<T> &of) const
	{
		T value;
		check(firn_load(session_, of.address(), 0, &value, sizeof value));
		return value;
	}

	/* A copy of a member as the operation sees it. */
	template <class T, class M> M get(const obj<T> &of, M T::*member) const
	{
		M value;
		check(firn_load(session_, of.address(), offset(of, member), &value, sizeof value));
		return value;
	}

	/* The text of a string member, as the operation sees it. */
	template <class T> std::string get(const obj<T> &of, string T::*member) const
	{
		std::string text;
		const void *bytes = firn_follow(session_, &(of.address()->*member).ref_);
		if (bytes != nullptr) {
			text.resize(firn_bytes_len(session_, bytes));
			check(firn_bytes_copy(session_, bytes, 0, text.data(), text.size()));
		}
		return text;
	}

	/* The object that a reference member names, as the operation sees it. */
	template <class T, class U> obj<U> get(const obj<T> &of, ptr<U> T::*member) const
	{
		return object<U>(firn_follow(session_, &(of.address()->*member).ref()));
	}

	void lock_shared(std::uint64_t lock)
	{
		check(firn_lock_shared(session_, lock));
	}

	firn_session *session() const noexcept
	{
		return session_;
	}

	/* Whether it is a transaction. */
	bool may_change() const noexcept
	{
		return may_change_;
	}

	template <class T> obj<T> object(const void *at) const
	{
#ifdef NDEBUG
		return obj<T>(at, tether());
#else
		return obj<T>(at, tether(life_));
#endif
	}

protected:
	operation(firn_session *session, bool may_change, [[maybe_unused]] detail::place here)
		: session_(session), may_change_(may_change)
	{
#ifndef NDEBUG
		life_ = std::make_shared<life>();
		life_->begun = here;
#endif
	}

	~operation()
	{
#ifndef NDEBUG
		life_->is_open = false;
#endif
	}

	template <class T, class M> static std::size_t offset(const obj<T> &of, M T::*member)
	{
		const char *start = reinterpret_cast<const char *>(of.address());
		return static_cast<std::size_t>(reinterpret_cast<const char *>(&(of.address()->*member)) - start);
	}

	/* The bytes of a string member in place, for operations that only read. */
	template <class T> std::string_view text_of(const obj<T> &of, string T::*member) const
	{
		const void *bytes = firn_follow(session_, &(of.address()->*member).ref_);
		if (bytes == nullptr)
			return {};
		std::size_t len = 0;
		return {static_cast<const char *>(checked(firn_bytes(session_, bytes, &len))), len};
	}

	/* A new string. */
	string made_of(std::string_view text)
	{
		string made;
		if (!text.empty())
			made.ref_ = firn_reference(session_, checked(firn_alloc_bytes(session_, text.data(), text.size())));
		return made;
	}

	/* Frees the bytes of a string member, which no other member may share. */
	template <class T> void free_string(const obj<T> &of, string T::*member)
	{
		const void *bytes = firn_follow(session_, &(of.address()->*member).ref_);
		check(firn_link(session_, of.address(), offset(of, member), nullptr));
		if (bytes != nullptr)
			check(firn_free(session_, bytes));
	}

private:
	firn_session *session_;
	bool may_change_;
#ifndef NDEBUG
	std::shared_ptr<life> life_;
#endif
};

} // namespace detail

/* A reading operation, until the end of its scope. */
class reading : public detail::operation
{
public:
	explicit reading(class session &session, detail::place here = detail::place::here())
		: operation(session.get(), false, here)
	{
		detail::check(firn_read_begin(session.get()));
	}

	~reading()
	{
		(void)firn_read_end(session());
	}

	/* The text of a string member, in place. */
	template <class T> std::string_view view(const obj<T> &of, string T::*member) const
	{
		return text_of(of, member);
	}
};

/* A transaction, which session::transaction begins and ends. */
class transaction : public detail::operation
{
public:
	/* Allocates an object with this content. */
	template <class T> obj<T> make(const T &value = T{})
	{
		return object<T>(detail::checked(firn_alloc(session(), detail::type<T>(), &value)));
	}

	/* Frees an object when the transaction commits; see firn_free. */
	template <class T> void free(const obj<T> &object)
	{
		detail::check(firn_free(session(), object.address()));
	}

	/* Stores a member. */
	template <class T, class M> void set(const obj<T> &of, M T::*member, const std::type_identity_t<M> &value)
	{
		detail::check(firn_store(session(), of.address(), offset(of, member), &value, sizeof value));
	}

	/* Makes a reference member name an object, or nothing. */
	template <class T, class U> void set(const obj<T> &of, ptr<U> T::*member, const std::type_identity_t<obj<U>> &to)
	{
		detail::check(firn_link(session(), of.address(), offset(of, member), to.address_or_null()));
	}

	/* Sets a string member to this text. Copies of the member keep the old text; a traced pool reclaims it when the last
	 * one is gone. */
	template <class T> void set(const obj<T> &of, string T::*member, std::string_view text)
	{
		string made = made_of(text);
		detail::check(firn_store(session(), of.address(), offset(of, member), &made, sizeof made));
	}

	/* A string of this text, to be stored in this transaction as part of an object. */
	string text(std::string_view text)
	{
		return made_of(text);
	}

	/* Makes a string member empty and frees its bytes, which no other member may share: for explicit pools. */
	template <class T> void free(const obj<T> &of, string T::*member)
	{
		free_string(of, member);
	}

	/* Stores all of an object. */
	template <class T> void set(const obj<T> &of, const std::type_identity_t<T> &value)
	{
		detail::check(firn_store(session(), of.address(), 0, &value, sizeof value));
	}

	/* A reference to an object, to be stored in this transaction as part of another. */
	template <class T> ptr<T> reference(const obj<T> &to) const
	{
		return ptr<T>::of(firn_reference(session(), to.address_or_null()));
	}

	template <class T> void set_root(const char *name, const obj<T> &object)
	{
		detail::check(firn_set_root(session(), name, object.address_or_null()));
	}

	void remove_root(const char *name)
	{
		detail::check(firn_set_root(session(), name, nullptr));
	}

	void lock_exclusive(std::uint64_t lock)
	{
		detail::check(firn_lock_exclusive(session(), lock));
	}

	/* Runs a nested part; an exception rolls the part back and propagates. */
	template <class Body> auto nested(Body &&body)
	{
		detail::check(firn_tx_begin(session()));
		return finished(body, *this);
	}

private:
	friend class session;

	transaction(firn_session *session, detail::place here) : operation(session, true, here)
	{
	}

	/* Runs `body`, then commits the innermost part. */
	template <class Body> static auto finished(Body &body, transaction &in)
	{
		firn_session *session = in.session();
		try {
			if constexpr (std::is_void_v<decltype(body(in))>) {
				body(in);
				detail::check(committed(session));
			} else {
				auto result = body(in);
				detail::check(committed(session));
				return result;
			}
		} catch (...) {
			if (!std::exchange(is_ended(), false))
				(void)firn_tx_abort(session);
			throw;
		}
	}

	/* A failed commit has already rolled back. */
	static firn_status committed(firn_session *session)
	{
		firn_status status = firn_tx_commit(session);
		is_ended() = status != FIRN_OK;
		return status;
	}

	static bool &is_ended()
	{
		static thread_local bool ended = false;
		return ended;
	}
};

template <class Body> auto session::transaction(Body &&body, detail::place here)
{
	for (;;) {
		detail::check(firn_tx_begin(session_));
		try {
			class transaction tx(session_, here);
			return transaction::finished(body, tx);
		} catch (const error &failure) {
			if (failure.status() != FIRN_CONFLICT)
				throw;
		}
	}
}

/* ------------------------------------------------------------------------------------------------------ handles */

/* A variable that names an object across operations, wherever it is moved; it keeps the object alive if it is strong. */
template <class T> class handle
{
public:
	handle() = default;

	static handle strong(const detail::operation &in, const obj<T> &object)
	{
		return handle(firn_handle_strong(in.session(), object.address()));
	}

	static handle weak(const detail::operation &in, const obj<T> &object)
	{
		return handle(firn_handle_weak(in.session(), object.address()));
	}

	handle(handle &&other) noexcept : handle_(std::exchange(other.handle_, nullptr))
	{
	}

	handle &operator=(handle &&other) noexcept
	{
		std::swap(handle_, other.handle_);
		return *this;
	}

	~handle()
	{
		firn_handle_drop(handle_);
	}

	/* The object now; none if it is gone. */
	obj<T> get(const detail::operation &in) const
	{
		return in.object<T>(handle_ == nullptr ? nullptr : firn_handle_get(in.session(), handle_));
	}

private:
	explicit handle(firn_handle *made) : handle_(made)
	{
		if (made == nullptr)
			throw error(firn_last_status());
	}

	firn_handle *handle_ = nullptr;
};

} // namespace firn

#include "firn/containers.hpp"

#endif /* FIRN_HPP */
