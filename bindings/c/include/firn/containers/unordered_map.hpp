/*
 * The unordered map. A part of containers.hpp.
 */
#ifndef FIRN_CONTAINERS_UNORDERED_MAP_HPP
#define FIRN_CONTAINERS_UNORDERED_MAP_HPP

#include "keyed.hpp"

namespace firn
{

namespace detail
{

struct hash_calls {
	static constexpr auto root = firn_hash_root;
	static constexpr auto named = firn_hash_named;
	static constexpr auto make = firn_hash_new;
	static constexpr auto len = firn_hash_len;
	static constexpr auto check = firn_hash_check;
	static constexpr auto clear = firn_hash_clear;
	static constexpr auto get = firn_hash_get;
	static constexpr auto insert = firn_hash_insert;
	static constexpr auto remove = firn_hash_remove;
};

} // namespace detail

template <detail::key K, class V> class unordered_map;

/* An unordered map, read-only. */
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

	/* As above, for a root_name. */
	unordered_map_view(const reading &in, const root_name &name) : base(in, name)
	{
	}

	/* The map that a reference names. */
	unordered_map_view(const detail::operation &in, const obj<unordered_map<K, V>> &object) : base(in, object)
	{
	}

	/* An iterator; entries are in no particular order. */
	class iterator : public detail::fetched<value_type>
	{
	public:
		using iterator_concept = std::forward_iterator_tag;

		iterator() = default;

		iterator &operator++()
		{
			if (!this->step())
				fetch();
			return *this;
		}

		iterator operator++(int)
		{
			iterator before = *this;
			++*this;
			return before;
		}

	private:
		friend class unordered_map_view;

		explicit iterator(const unordered_map_view *of) : of_(of)
		{
		}

		void fetch()
		{
			std::array<firn_entry, detail::batch_entries> found;
			std::size_t count = 0;
			detail::check(firn_hash_scan(of_->session(), of_->container_at(), &position_, found.data(),
						     of_->at_once(), &count));
			this->take(base::decode({found.data(), count}));
		}

		const unordered_map_view *of_ = nullptr;
		/* Where to continue after the fetched entries. */
		std::uint64_t position_ = 0;
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

	/* As above, for a root_name. */
	unordered_map_view(const transaction &in, const root_name &name) : base(in, name)
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
	/* The map of the root `name`, created if there is no such root. */
	unordered_map(transaction &in, const char *name) : base(in, name)
	{
	}

	/* As above, for a root_name. */
	unordered_map(transaction &in, const root_name &name) : base(in, name)
	{
	}

	/* The map that a reference names. */
	unordered_map(transaction &in, const obj<unordered_map> &object) : base(in, object)
	{
	}

	/* A new map, which nothing refers to yet. */
	explicit unordered_map(transaction &in)
		: base(in, in.template object<unordered_map>(detail::checked(firn_hash_new(in.session()))))
	{
	}
};

} // namespace firn

#endif /* FIRN_CONTAINERS_UNORDERED_MAP_HPP */
