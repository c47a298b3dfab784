/*
 * What firn.hpp stores: references, strings, and how the library learns where in a type they lie. Included by firn.hpp.
 */
#ifndef FIRN_TYPES_HPP
#define FIRN_TYPES_HPP

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "../firn.h"
#include "members.hpp"

namespace firn
{

/* ------------------------------------------------------------------------------------------------- references */

/* A reference to an object, as stored in the pool: one word. It is followed in an operation. */
template <class T> class ptr
{
public:
	using target = std::remove_cv_t<T>;

	ptr() = default;
	ptr(std::nullptr_t) noexcept
	{
	}

	explicit operator bool() const noexcept
	{
		return (ref_.word & ~std::uint64_t{15}) != 0;
	}

	/* Words may differ while objects move: compare the objects they lead to. */
	bool operator==(const ptr &) const = delete;

	const firn_ref &ref() const noexcept
	{
		return ref_;
	}

	static ptr of(firn_ref ref) noexcept
	{
		ptr made;
		made.ref_ = ref;
		return made;
	}

private:
	firn_ref ref_{0};
};

static_assert(sizeof(ptr<int>) == 8 && std::is_trivially_copyable_v<ptr<int>>);

namespace detail
{
class operation;
}

/* Text as a member of an object: a word that names its bytes, or nothing for "". An operation's get reads it; a
 * transaction's set makes it name new bytes, so copies of the old text do not change. */
class string
{
public:
	bool empty() const noexcept
	{
		return (ref_.word & ~std::uint64_t{15}) == 0;
	}

	static std::vector<firn_field> firn_references()
	{
		return {{"string", 0, sizeof(firn_ref)}};
	}

private:
	friend class detail::operation;

	firn_ref ref_{0};
};

/* Names the reference members of T, at least one, if they cannot be found automatically: inside the type, public. */
#define FIRN_REFERENCES(T, ...)                                                                                        \
	static std::vector<::firn_field> firn_references()                                                             \
	{                                                                                                              \
		return {FIRN_EACH(FIRN_FIELD, T, __VA_ARGS__)};                                                        \
	}

namespace detail
{

template <class T> struct is_ptr : std::false_type {
};
template <class T> struct is_ptr<ptr<T>> : std::true_type {
};

template <class T> struct is_array : std::false_type {
};
template <class T, std::size_t N> struct is_array<std::array<T, N>> : std::true_type {
};

/* Elements of an array of either kind. */
template <class T> inline constexpr std::size_t length = std::extent_v<T>;
template <class T, std::size_t N> inline constexpr std::size_t length<std::array<T, N>> = N;

template <class T>
concept named = requires {
	{ T::firn_name } -> std::convertible_to<const char *>;
};

template <class T>
concept says_references = requires {
	{ T::firn_references() } -> std::same_as<std::vector<firn_field>>;
};

/* Types that may be part of an object. */
template <class T> constexpr bool is_storable();

template <class... T> constexpr bool are_storable(std::tuple<T &...> *)
{
	return (is_storable<std::remove_cv_t<T>>() && ...);
}

template <class T> constexpr bool is_storable()
{
	if constexpr (std::is_pointer_v<T> || std::is_member_pointer_v<T> || std::is_reference_v<T> ||
		      std::is_null_pointer_v<T>)
		return false;
	else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T> || is_ptr<T>::value)
		return true;
	else if constexpr (is_array<T>::value)
		return is_storable<typename T::value_type>();
	else if constexpr (std::is_array_v<T>)
		return is_storable<std::remove_all_extents_t<T>>();
	else if constexpr (!std::is_trivially_copyable_v<T> || !std::is_standard_layout_v<T> || alignof(T) > 8)
		return false;
	else if constexpr (says_references<T>)
		return true;
	else if constexpr (std::is_empty_v<T>)
		return true;
	else if constexpr (std::is_aggregate_v<T>)
		return are_storable(static_cast<decltype(members(std::declval<T &>())) *>(nullptr));
	else
		return false;
}

template <class T> constexpr bool holds_references();

template <class... T> constexpr bool any_holds_references(std::tuple<T &...> *)
{
	return (holds_references<std::remove_cv_t<T>>() || ...);
}

/* Whether a storable type has references. */
template <class T> constexpr bool holds_references()
{
	if constexpr (is_ptr<T>::value || says_references<T>)
		return true;
	else if constexpr (is_array<T>::value)
		return holds_references<typename T::value_type>();
	else if constexpr (std::is_array_v<T>)
		return holds_references<std::remove_all_extents_t<T>>();
	else if constexpr (std::is_class_v<T> && !std::is_empty_v<T> && is_storable<T>())
		return any_holds_references(static_cast<decltype(members(std::declval<T &>())) *>(nullptr));
	else
		return false;
}

template <class T> const firn_type *type();

/* Returns the type that a reference leads to, if the pool knows it by a name; not possible for an incomplete type. */
template <class T> constexpr auto led_to() -> const firn_type *(*)(void)
{
	if constexpr (named<T>)
		return &type<T>;
	else
		return nullptr;
}

/* What a number is to the library. */
template <class T> constexpr firn_member_kind kind_of()
{
	if constexpr (std::is_enum_v<T>)
		return kind_of<std::underlying_type_t<T>>();
	else if constexpr (std::is_floating_point_v<T>)
		return FIRN_FLOAT;
	else if constexpr (std::is_integral_v<T>)
		return std::is_signed_v<T> ? FIRN_SIGNED : FIRN_UNSIGNED;
	else
		return FIRN_OPAQUE;
}

/* Collects what is to be said of a part that begins at `offset`. */
template <class T> void find_members(const T &part, std::size_t offset, std::vector<firn_member> &found)
{
	const auto at = static_cast<std::uint32_t>(offset);
	const auto bytes = static_cast<std::uint32_t>(sizeof(T));
	if constexpr (is_ptr<T>::value) {
		found.push_back({{"reference", at, bytes}, FIRN_REFERENCE, bytes, led_to<typename T::target>()});
	} else if constexpr (is_array<T>::value || std::is_array_v<T>) {
		using element = std::remove_cvref_t<decltype(part[0])>;
		if constexpr (holds_references<element>()) {
			// All elements have the references; the rest of the first says what that of the others is.
			for (std::size_t i = 0; i < length<T>; i++) {
				std::vector<firn_member> of_element;
				find_members(part[i], offset + i * sizeof part[i], of_element);
				for (const firn_member &member : of_element)
					if (i == 0 || member.kind == FIRN_REFERENCE)
						found.push_back(member);
			}
		} else if constexpr (!std::is_empty_v<T> && length<T> > 0) {
			found.push_back({{"member", at, bytes}, kind_of<element>(), sizeof(element), nullptr});
		}
	} else if constexpr (says_references<T>) {
		for (firn_field field : T::firn_references()) {
			field.offset += at;
			found.push_back({field, FIRN_REFERENCE, sizeof(firn_ref), nullptr});
		}
	} else if constexpr (std::is_class_v<T> && !std::is_empty_v<T>) {
		const char *start = reinterpret_cast<const char *>(&part);
		std::apply(
			[&](const auto &...member) {
				(find_members(member,
					      offset + static_cast<std::size_t>(
							       reinterpret_cast<const char *>(&member) - start),
					      found),
				 ...);
			},
			members(part));
	} else if constexpr (!std::is_empty_v<T>) {
		found.push_back({{"member", at, bytes}, kind_of<T>(), bytes, nullptr});
	}
}

/* The library's description of a type, made once. */
template <class T> const firn_type *type()
{
	static_assert(named<T>, "firn: the type has no firn_name, by which the pool knows it");
	static_assert(std::is_trivially_copyable_v<T>, "firn: objects are copied as bytes; the type is not trivially copyable");
	static_assert(std::is_standard_layout_v<T>, "firn: the type has virtual functions, or members of more than one class");
	static_assert(alignof(T) <= 8, "firn: objects are aligned to 8 bytes; the type wants more");
	static_assert(is_storable<T>(), "firn: the type has a member that means nothing in a pool, like a pointer; a reference is a firn::ptr");
	static const auto described = [] {
		struct both {
			std::vector<firn_member> members;
			firn_type type;
		};
		auto made = std::make_unique<both>();
		T sample{};
		find_members(sample, 0, made->members);
		std::uint32_t version = 1;
		if constexpr (requires { T::firn_version; })
			version = T::firn_version;
		const auto count = static_cast<std::uint32_t>(made->members.size());
		made->type = {T::firn_name, version, static_cast<std::uint32_t>(sizeof(T)), FIRN_MEMBERS + count,
			      count ? &made->members.front().field : nullptr};
		// It stays as long as any pool may be open.
		return made.release();
	}();
	return &described->type;
}

} // namespace detail
} // namespace firn

#endif /* FIRN_TYPES_HPP */
