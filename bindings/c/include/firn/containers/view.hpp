/*
 * What every collection can do, and the entries that an iterator has fetched. A part of containers.hpp.
 */
#ifndef FIRN_CONTAINERS_VIEW_HPP
#define FIRN_CONTAINERS_VIEW_HPP

#include <iterator>
#include <optional>

#include "bytes.hpp"

namespace firn
{

namespace detail
{

/* Whether a lookup found something, from its status. */
inline bool is_there(firn_status status)
{
	if (status == FIRN_NOT_FOUND)
		return false;
	check(status);
	return true;
}

/* Holds a value for operator->. */
template <class T> struct arrow {
	T value;

	const T *operator->() const
	{
		return &value;
	}
};

/* Number of entries that an iterator in a reading fetches at once. */
inline constexpr std::size_t batch_entries = 32;

/* The fetched entries of an iterator, and its current one; none at the end. Copies of an iterator share them. */
template <class Entry> class fetched
{
public:
	using iterator_category = std::input_iterator_tag;
	using value_type = Entry;
	using difference_type = std::int64_t;
	using reference = Entry;
	using pointer = arrow<Entry>;

	Entry operator*() const
	{
		return here();
	}

	pointer operator->() const
	{
		return {here()};
	}

	/* Whether two iterators of one collection are at one key, or both at the end. */
	bool operator==(const fetched &other) const
	{
		if (is_end() || other.is_end())
			return is_end() == other.is_end();
		return here().first == other.here().first;
	}

protected:
	bool is_end() const
	{
		return entries_ == nullptr;
	}

	const Entry &here() const
	{
		return (*entries_)[at_];
	}

	/* Advances within the fetched entries, if possible. */
	bool step()
	{
		if (at_ + 1 == entries_->size())
			return false;
		at_++;
		return true;
	}

	bool step_back()
	{
		if (at_ == 0)
			return false;
		at_--;
		return true;
	}

	/* Replaces the fetched entries; there may be none. */
	void take(std::vector<Entry> entries)
	{
		at_ = 0;
		entries_ = entries.empty() ? nullptr : std::make_shared<const std::vector<Entry>>(std::move(entries));
	}

private:
	std::shared_ptr<const std::vector<Entry>> entries_;
	std::size_t at_ = 0;
};

/* A collection, in an operation. `Calls` are the functions of containers.h, `Self` is the target of references. */
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

	/* Its object: for ptr members, roots and handles. */
	const obj<Self> &object() const
	{
		return object_;
	}

	/* Its violated invariants, a sentence each. */
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

	container_view(const operation &in, const root_name &name)
		: container_view(in, in.template object<Self>(checked(Calls::named(in.session(), name.get()))))
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

} // namespace detail

} // namespace firn

#endif /* FIRN_CONTAINERS_VIEW_HPP */
