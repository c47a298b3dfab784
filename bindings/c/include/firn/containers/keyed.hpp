/*
 * What both maps can do. A part of containers.hpp.
 */
#ifndef FIRN_CONTAINERS_KEYED_HPP
#define FIRN_CONTAINERS_KEYED_HPP

#include <initializer_list>

#include "view.hpp"

namespace firn
{

namespace detail
{

/* A collection of keys with values. */
template <class Calls, class Self, key K, class V> class keyed_view : public container_view<Calls, Self>
{
	using base = container_view<Calls, Self>;

public:
	using key_type = K;
	using mapped_type = V;
	using value_type = std::pair<const K, V>;
	using key_argument = typename key_bytes<K>::argument;

	/* The value of a key, if it exists. */
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

	/* The value of a key, which must exist. */
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

	static std::vector<value_type> decode(std::span<const firn_entry> found)
	{
		std::vector<value_type> entries;
		entries.reserve(found.size());
		for (const firn_entry &entry : found)
			entries.emplace_back(key_bytes<K>::decode(span_of(entry.key)),
					     value_bytes<V>::decode(span_of(entry.value)));
		return entries;
	}
};

/* Additional operations of a transaction on a collection of keys. `View` has those of every operation. */
template <class View, class Calls> class keyed : public View
{
public:
	using K = typename View::key_type;
	using V = typename View::mapped_type;
	using key_argument = typename View::key_argument;
	using value_argument = typename value_bytes<V>::argument;
	using iterator = typename View::iterator;
	using size_type = typename View::size_type;

	/* A proxy for the value of a key. Reading it yields V{} if the key is missing, and inserts nothing. */
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
			if constexpr (std::is_arithmetic_v<V> && std::is_arithmetic_v<T>) {
				using common = std::common_type_t<V, T>;
				value = static_cast<V>(static_cast<common>(value) + static_cast<common>(more));
			} else {
				value += more;
			}
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

	/* Inserts if the key is missing; returns its position and whether it is new. */
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

	/* Inserts, or replaces the value; true if the key is new. */
	bool insert_or_assign(key_argument key, value_argument value)
	{
		return put(key, value);
	}

	/* Removes a key; returns 1 if it existed. */
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

} // namespace detail

} // namespace firn

#endif /* FIRN_CONTAINERS_KEYED_HPP */
