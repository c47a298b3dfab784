/*
 * The ordered map. A part of containers.hpp.
 */
#ifndef FIRN_CONTAINERS_MAP_HPP
#define FIRN_CONTAINERS_MAP_HPP

#include "keyed.hpp"

namespace firn
{

namespace detail
{

struct map_calls {
	static constexpr auto root = firn_map_root;
	static constexpr auto named = firn_map_named;
	static constexpr auto make = firn_map_new;
	static constexpr auto len = firn_map_len;
	static constexpr auto check = firn_map_check;
	static constexpr auto clear = firn_map_clear;
	static constexpr auto get = firn_map_get;
	static constexpr auto insert = firn_map_insert;
	static constexpr auto remove = firn_map_remove;
};

} // namespace detail

template <detail::key K, class V> class map;

/* An ordered map, read-only. */
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

	/* As above, for a root_name. */
	map_view(const reading &in, const root_name &name) : base(in, name)
	{
	}

	/* The map that a reference names. */
	map_view(const detail::operation &in, const obj<map<K, V>> &object) : base(in, object)
	{
	}

	/* An iterator; entries are in key order. */
	class iterator : public detail::fetched<value_type>
	{
	public:
		using iterator_concept = std::bidirectional_iterator_tag;

		iterator() = default;

		iterator &operator++()
		{
			if (!this->step())
				fetch(FIRN_AFTER, this->here().first, of_->at_once());
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
			if (this->is_end())
				fetch(FIRN_LAST, std::nullopt, 1);
			else if (!this->step_back())
				fetch(FIRN_BEFORE, this->here().first, 1);
			return *this;
		}

		iterator operator--(int)
		{
			iterator before = *this;
			--*this;
			return before;
		}

	private:
		friend class map_view;

		explicit iterator(const map_view *of) : of_(of)
		{
		}

		void fetch(firn_seek seek, const std::optional<K> &from, std::size_t at_most)
		{
			this->take(of_->scan(seek, from, at_most));
		}

		const map_view *of_ = nullptr;
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

	/* As above, for a root_name. */
	map_view(const transaction &in, const root_name &name) : base(in, name)
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

	std::vector<value_type> scan(firn_seek seek, const std::optional<K> &from, std::size_t at_most) const
	{
		typename key_bytes<K>::room room;
		byte_span bytes;
		if (from)
			bytes = key_bytes<K>::encode(*from, room);
		std::array<firn_entry, detail::batch_entries> found;
		std::size_t count = 0;
		detail::check(firn_map_scan(this->session(), container_at(), seek, bytes.data(), bytes.size(),
					    found.data(), at_most, &count));
		return base::decode({found.data(), count});
	}
};

/* An ordered map, in a transaction. */
template <detail::key K, class V> class map : public detail::keyed<map_view<K, V>, detail::map_calls>
{
	using base = detail::keyed<map_view<K, V>, detail::map_calls>;

public:
	using typename base::iterator;
	using base::erase;

	/* The map of the root `name`, created if there is no such root. */
	map(transaction &in, const char *name) : base(in, name)
	{
	}

	/* As above, for a root_name. */
	map(transaction &in, const root_name &name) : base(in, name)
	{
	}

	/* The map that a reference names. */
	map(transaction &in, const obj<map> &object) : base(in, object)
	{
	}

	/* A new map, which nothing refers to yet. */
	explicit map(transaction &in)
		: base(in, in.template object<map>(detail::checked(firn_map_new(in.session()))))
	{
	}

	/* Removes an entry; returns the next one. */
	iterator erase(iterator at)
	{
		K key = at->first;
		this->erase(key);
		return this->lower_bound(key);
	}
};

} // namespace firn

#endif /* FIRN_CONTAINERS_MAP_HPP */
