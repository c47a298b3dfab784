/*
 * Collections for firn.hpp, which includes this: the structures of containers.h with the names of the standard's.
 *
 *     session.transaction([](firn::transaction &tx) {
 *         firn::map<std::string, std::uint64_t> ages(tx, "ages");     made if there is no such root
 *         ages["Ada"] = 36;
 *         ages.insert({"Grace", 85});
 *     });
 *     firn::reading reading(session);
 *     firn::map_view<std::string, std::uint64_t> ages(reading, "ages");
 *     for (const auto &[name, age] : ages)
 *         ...
 *
 * Each is a name for a collection in one operation: firn::map, unordered_map and vector in a transaction, map_view,
 * unordered_map_view and vector_view in any. To keep one in an object give that a member firn::ptr<firn::map<K, V>>,
 * and store map.object() there.
 *
 * Keys are integers, enumerations, std::string or std::array of bytes, or a type that firn::key_bytes is specialised
 * for; a map has them in their order. Values and elements are std::string, or what a type may hold that is stored,
 * without references: the collector would not see them. Content is handed out as copies, so dereferencing an iterator
 * yields a value; `m[key] = value` works, by a value that stands for the place.
 *
 * Iterators. In a transaction they go by key, or by index, and what is changed meanwhile they see; those of an
 * unordered_map are no longer good when something is inserted or removed. Those of a reading fetch some entries at a
 * time; each batch is of one moment.
 */
#ifndef FIRN_CONTAINERS_HPP
#define FIRN_CONTAINERS_HPP

#include <algorithm>
#include <bit>
#include <compare>
#include <initializer_list>
#include <iterator>
#include <optional>

#include "containers.h"

namespace firn
{

using byte_span = std::span<const unsigned char>;

namespace detail
{

inline byte_span span_of(std::string_view text)
{
	return {reinterpret_cast<const unsigned char *>(text.data()), text.size()};
}

inline byte_span span_of(const firn_span &found)
{
	return {static_cast<const unsigned char *>(found.bytes), found.len};
}

[[noreturn]] inline void wrong_size(std::size_t found, std::size_t wanted)
{
	throw error(FIRN_WRONG_TYPE, ("a collection holds something of " + std::to_string(found) +
				      " bytes where its type has " + std::to_string(wanted) + "; is it of another type?")
					     .c_str());
}

template <class T> void check_size(byte_span from)
{
	if (from.size() != sizeof(T))
		wrong_size(from.size(), sizeof(T));
}

} // namespace detail

/* How a key becomes bytes, and back. Compared as numbers, one after the other, the bytes are in the order of the keys.
 * `room` is what the bytes lie in, `argument` what is passed for a key. */
template <class K> struct key_bytes;

template <> struct key_bytes<std::string> {
	using argument = std::string_view;
	struct room {
	};

	static byte_span encode(argument key, room &)
	{
		return detail::span_of(key);
	}

	static std::string decode(byte_span from)
	{
		return {reinterpret_cast<const char *>(from.data()), from.size()};
	}
};

template <class K>
	requires std::is_integral_v<K> || std::is_enum_v<K>
struct key_bytes<K> {
	using argument = K;
	using room = std::array<unsigned char, sizeof(K)>;

	/* The most significant byte first; negative numbers in front. */
	static byte_span encode(K key, room &room)
	{
		bits flipped = flip(static_cast<bits>(key));
		for (std::size_t i = sizeof(K); i-- > 0; flipped = static_cast<bits>(flipped >> 4 >> 4))
			room[i] = static_cast<unsigned char>(flipped & 0xff);
		return room;
	}

	static K decode(byte_span from)
	{
		detail::check_size<K>(from);
		bits all = 0;
		for (unsigned char byte : from)
			all = static_cast<bits>(static_cast<bits>(all << 4 << 4) | byte);
		return static_cast<K>(flip(all));
	}

private:
	static constexpr auto number()
	{
		if constexpr (std::is_enum_v<K>)
			return std::underlying_type_t<K>{};
		else
			return K{};
	}
	using numeric = std::conditional_t<std::is_same_v<decltype(number()), bool>, unsigned char, decltype(number())>;
	using bits = std::make_unsigned_t<numeric>;

	static constexpr bits flip(bits of)
	{
		constexpr bits sign = static_cast<bits>(bits{1} << (8 * sizeof(bits) - 1));
		return std::is_signed_v<numeric> ? static_cast<bits>(of ^ sign) : of;
	}
};

template <class B, std::size_t N>
	requires(sizeof(B) == 1 && (std::is_same_v<B, std::byte> || std::is_unsigned_v<B>))
struct key_bytes<std::array<B, N>> {
	using argument = const std::array<B, N> &;
	struct room {
	};

	static byte_span encode(argument key, room &)
	{
		return {reinterpret_cast<const unsigned char *>(key.data()), N};
	}

	static std::array<B, N> decode(byte_span from)
	{
		detail::check_size<std::array<B, N>>(from);
		std::array<B, N> key;
		std::memcpy(key.data(), from.data(), N);
		return key;
	}
};

namespace detail
{

template <class K>
concept key = requires(byte_span from) {
	{ key_bytes<K>::decode(from) } -> std::same_as<K>;
};

/* How a value becomes bytes, and back. */
template <class V> struct value_bytes {
	static_assert(is_storable<V>(), "firn: a value has a member that means nothing in a pool, like a pointer");
	static_assert(std::is_trivially_copyable_v<V>, "firn: values are copied as bytes; the type is not trivially copyable");
	static_assert(!holds_references<V>(), "firn: a collection's values hold no references; the collector would not see them");

	using argument = const V &;

	static byte_span encode(const V &value)
	{
		return {reinterpret_cast<const unsigned char *>(&value), sizeof value};
	}

	static V decode(byte_span from)
	{
		check_size<V>(from);
		V value;
		std::memcpy(&value, from.data(), sizeof value);
		return value;
	}
};

template <> struct value_bytes<std::string> {
	using argument = std::string_view;

	static byte_span encode(std::string_view value)
	{
		return span_of(value);
	}

	static std::string decode(byte_span from)
	{
		return key_bytes<std::string>::decode(from);
	}
};

/* Whether something is there, as a call says that looked for it. */
inline bool is_there(firn_status status)
{
	if (status == FIRN_NOT_FOUND)
		return false;
	check(status);
	return true;
}

/* What holds a value that operator-> can lead to. */
template <class T> struct arrow {
	T value;

	const T *operator->() const
	{
		return &value;
	}
};

/* Entries that an iterator in a reading fetches at once. */
inline constexpr std::size_t batch_entries = 32;

/* A collection, in an operation. `Calls` are the functions of containers.h, `Self` what a reference is to. */
template <class Calls, class Self> class container_view
{
public:
	using size_type = std::uint64_t;
	using difference_type = std::int64_t;

	size_type size() const
	{
		firn_clear_status();
		size_type len = Calls::len(session(), at());
		if (len == 0 && firn_last_status() != FIRN_OK)
			throw error(firn_last_status());
		return len;
	}

	bool empty() const
	{
		return size() == 0;
	}

	/* The object that it is: for ptr members, roots and handles. */
	const obj<Self> &object() const
	{
		return object_;
	}

	/* What is wrong with it, a sentence each. */
	std::vector<std::string> check() const
	{
		std::vector<std::string> found;
		auto finding = [](std::uint64_t, const char *what, void *argument) {
			static_cast<std::vector<std::string> *>(argument)->emplace_back(what);
		};
		detail::check(Calls::check(session(), at(), finding, &found, nullptr));
		return found;
	}

protected:
	container_view(const operation &in, const char *name)
		: container_view(in, in.template object<Self>(checked(Calls::root(in.session(), name))))
	{
	}

	container_view(const operation &in, obj<Self> object)
		: session_(in.session()), object_(std::move(object)), at_once_(in.may_change() ? 1 : batch_entries)
	{
	}

	firn_session *session() const
	{
		return session_;
	}

	const void *at() const
	{
		return object_.address();
	}

	std::size_t at_once() const
	{
		return at_once_;
	}

private:
	firn_session *session_;
	obj<Self> object_;
	std::size_t at_once_;
};

/* A collection of keys with values. */
template <class Calls, class Self, key K, class V> class keyed_view : public container_view<Calls, Self>
{
	using base = container_view<Calls, Self>;

public:
	using key_type = K;
	using mapped_type = V;
	using value_type = std::pair<const K, V>;
	using key_argument = typename key_bytes<K>::argument;

	/* The value of a key, if it is there. */
	std::optional<V> get(key_argument key) const
	{
		firn_span found;
		if (!is_there(look_up(key, &found)))
			return std::nullopt;
		return value_bytes<V>::decode(span_of(found));
	}

	bool contains(key_argument key) const
	{
		return is_there(look_up(key, nullptr));
	}

	std::uint64_t count(key_argument key) const
	{
		return contains(key) ? 1 : 0;
	}

	/* The value of a key, which has to be there. */
	V at(key_argument key) const
	{
		firn_span found;
		if (!is_there(look_up(key, &found)))
			throw std::out_of_range("firn: there is no such key");
		return value_bytes<V>::decode(span_of(found));
	}

protected:
	using base::base;

	firn_status look_up(key_argument key, firn_span *found) const
	{
		typename key_bytes<K>::room room;
		byte_span bytes = key_bytes<K>::encode(key, room);
		return Calls::get(this->session(), base::at(), bytes.data(), bytes.size(), found);
	}

	static value_type decode(const firn_entry &entry)
	{
		return {key_bytes<K>::decode(span_of(entry.key)), value_bytes<V>::decode(span_of(entry.value))};
	}
};

/* What a transaction can do with a collection of keys besides. `View` is what every operation can. */
template <class View, class Calls> class keyed : public View
{
public:
	using K = typename View::key_type;
	using V = typename View::mapped_type;
	using key_argument = typename View::key_argument;
	using value_argument = typename value_bytes<V>::argument;
	using iterator = typename View::iterator;
	using size_type = typename View::size_type;

	/* Stands for the value of a key. Reading it yields V{} if the key is not there, and inserts nothing. */
	class place
	{
	public:
		place(const keyed &of, key_argument key) : of_(of), key_(key)
		{
		}

		operator V() const
		{
			return of_.get(key_).value_or(V{});
		}

		place &operator=(value_argument value)
		{
			of_.put(key_, value);
			return *this;
		}

		place &operator=(const place &other)
		{
			return *this = static_cast<V>(other);
		}

		template <class T> place &operator+=(const T &more)
		{
			V value = *this;
			value += more;
			return *this = value;
		}

	private:
		const keyed &of_;
		K key_;
	};

	place operator[](key_argument key)
	{
		return place(*this, key);
	}

	/* Inserts if the key is not there; where it is now, and whether it is new. */
	std::pair<iterator, bool> insert(const std::pair<const K, V> &entry)
	{
		bool is_new = !this->contains(entry.first);
		if (is_new)
			put(entry.first, entry.second);
		return {this->find(entry.first), is_new};
	}

	void insert(std::initializer_list<std::pair<const K, V>> entries)
	{
		for (const auto &entry : entries)
			if (!this->contains(entry.first))
				put(entry.first, entry.second);
	}

	/* Inserts, or replaces the value; true if it is new. */
	bool insert_or_assign(key_argument key, value_argument value)
	{
		return put(key, value);
	}

	/* Removes a key: 1 if it was there. */
	size_type erase(key_argument key)
	{
		typename key_bytes<K>::room room;
		byte_span bytes = key_bytes<K>::encode(key, room);
		return is_there(Calls::remove(this->session(), View::container_at(), bytes.data(), bytes.size())) ? 1 : 0;
	}

	void clear()
	{
		detail::check(Calls::clear(this->session(), View::container_at()));
	}

protected:
	using View::View;

private:
	bool put(key_argument key, value_argument value) const
	{
		typename key_bytes<K>::room room;
		byte_span bytes = key_bytes<K>::encode(key, room);
		byte_span encoded = value_bytes<V>::encode(value);
		int replaced = 0;
		detail::check(Calls::insert(this->session(), View::container_at(), bytes.data(), bytes.size(),
					    encoded.data(), encoded.size(), &replaced));
		return replaced == 0;
	}
};

struct map_calls {
	static constexpr auto root = firn_map_root;
	static constexpr auto make = firn_map_new;
	static constexpr auto len = firn_map_len;
	static constexpr auto check = firn_map_check;
	static constexpr auto clear = firn_map_clear;
	static constexpr auto get = firn_map_get;
	static constexpr auto insert = firn_map_insert;
	static constexpr auto remove = firn_map_remove;
};

struct hash_calls {
	static constexpr auto root = firn_hash_root;
	static constexpr auto make = firn_hash_new;
	static constexpr auto len = firn_hash_len;
	static constexpr auto check = firn_hash_check;
	static constexpr auto clear = firn_hash_clear;
	static constexpr auto get = firn_hash_get;
	static constexpr auto insert = firn_hash_insert;
	static constexpr auto remove = firn_hash_remove;
};

struct vector_calls {
	static constexpr auto root = firn_vector_root;
	static constexpr auto make = firn_vector_new;
	static constexpr auto len = firn_vector_len;
	static constexpr auto check = firn_vector_check;
	static constexpr auto clear = firn_vector_clear;
};

} // namespace detail

template <detail::key K, class V> class map;
template <detail::key K, class V> class unordered_map;
template <class T> class vector;

/* ------------------------------------------------------------------------------------------------ ordered map */

/* An ordered map, to be read. */
template <detail::key K, class V>
class map_view : public detail::keyed_view<detail::map_calls, map<K, V>, K, V>
{
	using base = detail::keyed_view<detail::map_calls, map<K, V>, K, V>;

public:
	using typename base::key_argument;
	using typename base::value_type;

	/* The map of the root `name`. Fails if there is none. */
	map_view(const reading &in, const char *name) : base(in, name)
	{
	}

	/* The map that a reference names. */
	map_view(const detail::operation &in, const obj<map<K, V>> &object) : base(in, object)
	{
	}

	/* A place among the entries, which are in the order of their keys. */
	class iterator
	{
	public:
		using iterator_category = std::input_iterator_tag;
		using iterator_concept = std::bidirectional_iterator_tag;
		using value_type = typename base::value_type;
		using difference_type = std::int64_t;
		using reference = value_type;
		using pointer = detail::arrow<value_type>;

		iterator() = default;

		value_type operator*() const
		{
			return here();
		}

		pointer operator->() const
		{
			return {here()};
		}

		iterator &operator++()
		{
			if (at_ + 1 < entries_->size())
				at_++;
			else
				fetch(FIRN_AFTER, here().first, of_->at_once());
			return *this;
		}

		iterator operator++(int)
		{
			iterator before = *this;
			++*this;
			return before;
		}

		iterator &operator--()
		{
			if (entries_ == nullptr)
				fetch(FIRN_LAST, std::nullopt, 1);
			else if (at_ > 0)
				at_--;
			else
				fetch(FIRN_BEFORE, here().first, 1);
			return *this;
		}

		iterator operator--(int)
		{
			iterator before = *this;
			--*this;
			return before;
		}

		bool operator==(const iterator &other) const
		{
			if (entries_ == nullptr || other.entries_ == nullptr)
				return entries_ == other.entries_;
			return here().first == other.here().first;
		}

	private:
		friend class map_view;

		explicit iterator(const map_view *of) : of_(of)
		{
		}

		const value_type &here() const
		{
			return (*entries_)[at_];
		}

		void fetch(firn_seek seek, const std::optional<K> &from, std::size_t at_most)
		{
			entries_ = of_->scan(seek, from, at_most);
			at_ = 0;
		}

		const map_view *of_ = nullptr;
		/* What was fetched, null at the end; copies of an iterator share it. */
		std::shared_ptr<const std::vector<value_type>> entries_;
		std::size_t at_ = 0;
	};
	using const_iterator = iterator;

	iterator begin() const
	{
		return from(FIRN_FIRST, std::nullopt, this->at_once());
	}

	iterator end() const
	{
		return iterator(this);
	}

	iterator find(key_argument key) const
	{
		iterator found = from(FIRN_FROM, K(key), 1);
		return found != end() && (*found).first == key ? found : end();
	}

	/* The first entry whose key is not less. */
	iterator lower_bound(key_argument key) const
	{
		return from(FIRN_FROM, K(key), this->at_once());
	}

	/* The first entry whose key is greater. */
	iterator upper_bound(key_argument key) const
	{
		return from(FIRN_AFTER, K(key), this->at_once());
	}

protected:
	map_view(const transaction &in, const char *name) : base(in, name)
	{
	}

	const void *container_at() const
	{
		return detail::container_view<detail::map_calls, map<K, V>>::at();
	}

private:
	iterator from(firn_seek seek, const std::optional<K> &key, std::size_t at_most) const
	{
		iterator found(this);
		found.fetch(seek, key, at_most);
		return found;
	}

	std::shared_ptr<const std::vector<value_type>> scan(firn_seek seek, const std::optional<K> &from,
							    std::size_t at_most) const
	{
		typename key_bytes<K>::room room;
		byte_span bytes;
		if (from)
			bytes = key_bytes<K>::encode(*from, room);
		std::array<firn_entry, detail::batch_entries> found;
		std::size_t count = 0;
		detail::check(firn_map_scan(this->session(), container_at(), seek, bytes.data(), bytes.size(),
					    found.data(), at_most, &count));
		if (count == 0)
			return nullptr;
		auto entries = std::make_shared<std::vector<value_type>>();
		entries->reserve(count);
		for (std::size_t i = 0; i < count; i++)
			entries->push_back(base::decode(found[i]));
		return entries;
	}
};

/* An ordered map, in a transaction. */
template <detail::key K, class V> class map : public detail::keyed<map_view<K, V>, detail::map_calls>
{
	using base = detail::keyed<map_view<K, V>, detail::map_calls>;

public:
	using typename base::iterator;
	using base::erase;

	/* The map of the root `name`, made if there is no such root. */
	map(transaction &in, const char *name) : base(in, name)
	{
	}

	/* The map that a reference names. */
	map(transaction &in, const obj<map> &object) : base(in, object)
	{
	}

	/* A new map, which nothing names yet. */
	explicit map(transaction &in)
		: base(in, in.template object<map>(detail::checked(firn_map_new(in.session()))))
	{
	}

	/* Removes an entry; the one behind it. */
	iterator erase(iterator at)
	{
		K key = at->first;
		this->erase(key);
		return this->lower_bound(key);
	}
};

/* ---------------------------------------------------------------------------------------------- unordered map */

/* An unordered map, to be read. */
template <detail::key K, class V>
class unordered_map_view : public detail::keyed_view<detail::hash_calls, unordered_map<K, V>, K, V>
{
	using base = detail::keyed_view<detail::hash_calls, unordered_map<K, V>, K, V>;

public:
	using typename base::key_argument;
	using typename base::value_type;

	/* The map of the root `name`. Fails if there is none. */
	unordered_map_view(const reading &in, const char *name) : base(in, name)
	{
	}

	/* The map that a reference names. */
	unordered_map_view(const detail::operation &in, const obj<unordered_map<K, V>> &object) : base(in, object)
	{
	}

	/* A place among the entries, which are in no order. */
	class iterator
	{
	public:
		using iterator_category = std::input_iterator_tag;
		using iterator_concept = std::forward_iterator_tag;
		using value_type = typename base::value_type;
		using difference_type = std::int64_t;
		using reference = value_type;
		using pointer = detail::arrow<value_type>;

		iterator() = default;

		value_type operator*() const
		{
			return here();
		}

		pointer operator->() const
		{
			return {here()};
		}

		iterator &operator++()
		{
			if (++at_ == entries_->size())
				fetch();
			return *this;
		}

		iterator operator++(int)
		{
			iterator before = *this;
			++*this;
			return before;
		}

		bool operator==(const iterator &other) const
		{
			if (entries_ == nullptr || other.entries_ == nullptr)
				return entries_ == other.entries_;
			return here().first == other.here().first;
		}

	private:
		friend class unordered_map_view;

		explicit iterator(const unordered_map_view *of) : of_(of)
		{
		}

		const value_type &here() const
		{
			return (*entries_)[at_];
		}

		void fetch()
		{
			std::array<firn_entry, detail::batch_entries> found;
			std::size_t count = 0;
			detail::check(firn_hash_scan(of_->session(), of_->container_at(), &position_, found.data(),
						     of_->at_once(), &count));
			at_ = 0;
			if (count == 0) {
				entries_ = nullptr;
				return;
			}
			auto entries = std::make_shared<std::vector<value_type>>();
			entries->reserve(count);
			for (std::size_t i = 0; i < count; i++)
				entries->push_back(base::decode(found[i]));
			entries_ = std::move(entries);
		}

		const unordered_map_view *of_ = nullptr;
		std::uint64_t position_ = 0;
		/* What was fetched, null at the end; copies of an iterator share it. */
		std::shared_ptr<const std::vector<value_type>> entries_;
		std::size_t at_ = 0;
	};
	using const_iterator = iterator;

	iterator begin() const
	{
		iterator first(this);
		first.fetch();
		return first;
	}

	iterator find(key_argument key) const
	{
		typename key_bytes<K>::room room;
		byte_span bytes = key_bytes<K>::encode(key, room);
		iterator found(this);
		if (!detail::is_there(firn_hash_position(this->session(), container_at(), bytes.data(), bytes.size(),
							 &found.position_)))
			return end();
		found.fetch();
		return found;
	}

	iterator end() const
	{
		return iterator(this);
	}

protected:
	unordered_map_view(const transaction &in, const char *name) : base(in, name)
	{
	}

	const void *container_at() const
	{
		return detail::container_view<detail::hash_calls, unordered_map<K, V>>::at();
	}
};

/* An unordered map, in a transaction. */
template <detail::key K, class V>
class unordered_map : public detail::keyed<unordered_map_view<K, V>, detail::hash_calls>
{
	using base = detail::keyed<unordered_map_view<K, V>, detail::hash_calls>;

public:
	/* The map of the root `name`, made if there is no such root. */
	unordered_map(transaction &in, const char *name) : base(in, name)
	{
	}

	/* The map that a reference names. */
	unordered_map(transaction &in, const obj<unordered_map> &object) : base(in, object)
	{
	}

	/* A new map, which nothing names yet. */
	explicit unordered_map(transaction &in)
		: base(in, in.template object<unordered_map>(detail::checked(firn_hash_new(in.session()))))
	{
	}
};

/* ----------------------------------------------------------------------------------------------------- vector */

/* A vector, to be read. */
template <class T> class vector_view : public detail::container_view<detail::vector_calls, vector<T>>
{
	using base = detail::container_view<detail::vector_calls, vector<T>>;

public:
	using value_type = T;
	using typename base::size_type;

	/* The vector of the root `name`. Fails if there is none. */
	vector_view(const reading &in, const char *name) : base(in, name)
	{
	}

	/* The vector that a reference names. */
	vector_view(const detail::operation &in, const obj<vector<T>> &object) : base(in, object)
	{
	}

	/* The element at `index`, if there is one. */
	std::optional<T> get(size_type index) const
	{
		firn_span found;
		if (!detail::is_there(firn_vector_get(this->session(), container_at(), index, &found)))
			return std::nullopt;
		return detail::value_bytes<T>::decode(detail::span_of(found));
	}

	/* The element at `index`, which has to be there. */
	T at(size_type index) const
	{
		firn_span found;
		if (!detail::is_there(firn_vector_get(this->session(), container_at(), index, &found)))
			throw std::out_of_range("firn: there is no such element");
		return detail::value_bytes<T>::decode(detail::span_of(found));
	}

	T operator[](size_type index) const
	{
		return at(index);
	}

	T front() const
	{
		return at(0);
	}

	T back() const
	{
		return at(this->size() - 1);
	}

	/* A place among the elements. */
	class iterator
	{
	public:
		using iterator_category = std::input_iterator_tag;
		using iterator_concept = std::random_access_iterator_tag;
		using value_type = T;
		using difference_type = std::int64_t;
		using reference = T;
		using pointer = detail::arrow<T>;

		iterator() = default;

		T operator*() const
		{
			return of_->at(index_);
		}

		pointer operator->() const
		{
			return {**this};
		}

		T operator[](difference_type by) const
		{
			return *(*this + by);
		}

		iterator &operator+=(difference_type by)
		{
			index_ += static_cast<size_type>(by);
			return *this;
		}

		iterator &operator-=(difference_type by)
		{
			index_ -= static_cast<size_type>(by);
			return *this;
		}

		iterator &operator++()
		{
			return *this += 1;
		}

		iterator &operator--()
		{
			return *this -= 1;
		}

		iterator operator++(int)
		{
			iterator before = *this;
			++*this;
			return before;
		}

		iterator operator--(int)
		{
			iterator before = *this;
			--*this;
			return before;
		}

		friend iterator operator+(iterator from, difference_type by)
		{
			return from += by;
		}

		friend iterator operator+(difference_type by, iterator from)
		{
			return from += by;
		}

		friend iterator operator-(iterator from, difference_type by)
		{
			return from -= by;
		}

		friend difference_type operator-(const iterator &to, const iterator &from)
		{
			return static_cast<difference_type>(to.index_ - from.index_);
		}

		bool operator==(const iterator &other) const
		{
			return index_ == other.index_;
		}

		auto operator<=>(const iterator &other) const
		{
			return index_ <=> other.index_;
		}

	private:
		friend class vector_view;
		friend class vector<T>;

		iterator(const vector_view *of, size_type index) : of_(of), index_(index)
		{
		}

		const vector_view *of_ = nullptr;
		size_type index_ = 0;
	};
	using const_iterator = iterator;

	iterator begin() const
	{
		return iterator(this, 0);
	}

	iterator end() const
	{
		return iterator(this, this->size());
	}

protected:
	vector_view(const transaction &in, const char *name) : base(in, name)
	{
	}

	const void *container_at() const
	{
		return base::at();
	}
};

/* A vector, in a transaction. */
template <class T> class vector : public vector_view<T>
{
	using bytes = detail::value_bytes<T>;

public:
	using argument = typename bytes::argument;
	using typename vector_view<T>::iterator;
	using typename vector_view<T>::size_type;

	/* The vector of the root `name`, made if there is no such root. */
	vector(transaction &in, const char *name) : vector_view<T>(in, name)
	{
	}

	/* The vector that a reference names. */
	vector(transaction &in, const obj<vector> &object) : vector_view<T>(in, object)
	{
	}

	/* A new vector, which nothing names yet. */
	explicit vector(transaction &in)
		: vector_view<T>(in, in.template object<vector>(detail::checked(firn_vector_new(in.session()))))
	{
	}

	/* Stands for an element. */
	class place
	{
	public:
		place(const vector &of, size_type index) : of_(of), index_(index)
		{
		}

		operator T() const
		{
			return of_.at(index_);
		}

		place &operator=(argument value)
		{
			of_.set(index_, value);
			return *this;
		}

		place &operator=(const place &other)
		{
			return *this = static_cast<T>(other);
		}

		template <class M> place &operator+=(const M &more)
		{
			T value = *this;
			value += more;
			return *this = value;
		}

	private:
		const vector &of_;
		size_type index_;
	};

	place operator[](size_type index)
	{
		return place(*this, index);
	}

	void push_back(argument value)
	{
		byte_span encoded = bytes::encode(value);
		detail::check(firn_vector_push(this->session(), this->container_at(), encoded.data(), encoded.size()));
	}

	/* Removes the last element, if there is one. */
	void pop_back()
	{
		detail::is_there(firn_vector_pop(this->session(), this->container_at(), nullptr));
	}

	/* Inserts in front of `at`, in time linear in what is behind; where it is now. */
	iterator insert(iterator at, argument value)
	{
		byte_span encoded = bytes::encode(value);
		detail::check(firn_vector_insert(this->session(), this->container_at(), at.index_, encoded.data(),
						 encoded.size()));
		return at;
	}

	/* Removes an element, in time linear in what is behind; the one behind it. */
	iterator erase(iterator at)
	{
		detail::check(firn_vector_remove(this->session(), this->container_at(), at.index_));
		return at;
	}

	void clear()
	{
		detail::check(firn_vector_clear(this->session(), this->container_at()));
	}

	void resize(size_type len, argument with = T{})
	{
		detail::check(firn_vector_truncate(this->session(), this->container_at(), len));
		for (size_type now = this->size(); now < len; now++)
			push_back(with);
	}

private:
	void set(size_type index, argument value) const
	{
		byte_span encoded = bytes::encode(value);
		detail::check(firn_vector_set(this->session(), this->container_at(), index, encoded.data(),
					      encoded.size()));
	}
};

} // namespace firn

#endif /* FIRN_CONTAINERS_HPP */
