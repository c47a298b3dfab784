/*
 * The vector. A part of containers.hpp.
 */
#ifndef FIRN_CONTAINERS_VECTOR_HPP
#define FIRN_CONTAINERS_VECTOR_HPP

#include <compare>

#include "view.hpp"

namespace firn
{

namespace detail
{

struct vector_calls {
	static constexpr auto root = firn_vector_root;
	static constexpr auto named = firn_vector_named;
	static constexpr auto make = firn_vector_new;
	static constexpr auto len = firn_vector_len;
	static constexpr auto check = firn_vector_check;
	static constexpr auto clear = firn_vector_clear;
};

} // namespace detail

template <class T> class vector;

/* A vector, read-only. */
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

	/* As above, for a root_name. */
	vector_view(const reading &in, const root_name &name) : base(in, name)
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

	/* The element at `index`, which must exist. */
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

	/* An iterator. */
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

	/* As above, for a root_name. */
	vector_view(const transaction &in, const root_name &name) : base(in, name)
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

	/* The vector of the root `name`, created if there is no such root. */
	vector(transaction &in, const char *name) : vector_view<T>(in, name)
	{
	}

	/* As above, for a root_name. */
	vector(transaction &in, const root_name &name) : vector_view<T>(in, name)
	{
	}

	/* The vector that a reference names. */
	vector(transaction &in, const obj<vector> &object) : vector_view<T>(in, object)
	{
	}

	/* A new vector, which nothing refers to yet. */
	explicit vector(transaction &in)
		: vector_view<T>(in, in.template object<vector>(detail::checked(firn_vector_new(in.session()))))
	{
	}

	/* A proxy for an element. */
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

	/* Inserts in front of `at`, in time linear in the elements behind; returns its position. */
	iterator insert(iterator at, argument value)
	{
		byte_span encoded = bytes::encode(value);
		detail::check(firn_vector_insert(this->session(), this->container_at(), at.index_, encoded.data(),
						 encoded.size()));
		return at;
	}

	/* Removes an element, in time linear in the elements behind; returns the next one. */
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

#endif /* FIRN_CONTAINERS_VECTOR_HPP */
