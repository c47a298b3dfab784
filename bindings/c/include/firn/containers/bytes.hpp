/*
 * How keys, values and elements become bytes, and back. A part of containers.hpp.
 */
#ifndef FIRN_CONTAINERS_BYTES_HPP
#define FIRN_CONTAINERS_BYTES_HPP

#include "../containers.h"

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

} // namespace detail

} // namespace firn

#endif /* FIRN_CONTAINERS_BYTES_HPP */
