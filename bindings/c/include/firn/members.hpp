/*
 * How many members an aggregate has, and each of them. A part of types.hpp.
 *
 * The language has no loop over members, so the preprocessor makes what follows for each number of them.
 */
#ifndef FIRN_MEMBERS_HPP
#define FIRN_MEMBERS_HPP

#include <cstddef>
#include <tuple>
#include <type_traits>

namespace firn::detail
{

/* Members of an aggregate that are counted at most. */
inline constexpr std::size_t most_members = 64;

/* FIRN_MEMBERS_n(FIRN_NAME) lists n names, FIRN_MEMBERS_n(FIRN_BRACES) n empty initializers. An array counts as one
 * member, because its initializer is empty, too. */
#define FIRN_NAME(member) member
#define FIRN_BRACES(member) {}
#define FIRN_MEMBERS_1(as) as(m1)
#define FIRN_MEMBERS_2(as) FIRN_MEMBERS_1(as), as(m2)
#define FIRN_MEMBERS_3(as) FIRN_MEMBERS_2(as), as(m3)
#define FIRN_MEMBERS_4(as) FIRN_MEMBERS_3(as), as(m4)
#define FIRN_MEMBERS_5(as) FIRN_MEMBERS_4(as), as(m5)
#define FIRN_MEMBERS_6(as) FIRN_MEMBERS_5(as), as(m6)
#define FIRN_MEMBERS_7(as) FIRN_MEMBERS_6(as), as(m7)
#define FIRN_MEMBERS_8(as) FIRN_MEMBERS_7(as), as(m8)
#define FIRN_MEMBERS_9(as) FIRN_MEMBERS_8(as), as(m9)
#define FIRN_MEMBERS_10(as) FIRN_MEMBERS_9(as), as(m10)
#define FIRN_MEMBERS_11(as) FIRN_MEMBERS_10(as), as(m11)
#define FIRN_MEMBERS_12(as) FIRN_MEMBERS_11(as), as(m12)
#define FIRN_MEMBERS_13(as) FIRN_MEMBERS_12(as), as(m13)
#define FIRN_MEMBERS_14(as) FIRN_MEMBERS_13(as), as(m14)
#define FIRN_MEMBERS_15(as) FIRN_MEMBERS_14(as), as(m15)
#define FIRN_MEMBERS_16(as) FIRN_MEMBERS_15(as), as(m16)
#define FIRN_MEMBERS_17(as) FIRN_MEMBERS_16(as), as(m17)
#define FIRN_MEMBERS_18(as) FIRN_MEMBERS_17(as), as(m18)
#define FIRN_MEMBERS_19(as) FIRN_MEMBERS_18(as), as(m19)
#define FIRN_MEMBERS_20(as) FIRN_MEMBERS_19(as), as(m20)
#define FIRN_MEMBERS_21(as) FIRN_MEMBERS_20(as), as(m21)
#define FIRN_MEMBERS_22(as) FIRN_MEMBERS_21(as), as(m22)
#define FIRN_MEMBERS_23(as) FIRN_MEMBERS_22(as), as(m23)
#define FIRN_MEMBERS_24(as) FIRN_MEMBERS_23(as), as(m24)
#define FIRN_MEMBERS_25(as) FIRN_MEMBERS_24(as), as(m25)
#define FIRN_MEMBERS_26(as) FIRN_MEMBERS_25(as), as(m26)
#define FIRN_MEMBERS_27(as) FIRN_MEMBERS_26(as), as(m27)
#define FIRN_MEMBERS_28(as) FIRN_MEMBERS_27(as), as(m28)
#define FIRN_MEMBERS_29(as) FIRN_MEMBERS_28(as), as(m29)
#define FIRN_MEMBERS_30(as) FIRN_MEMBERS_29(as), as(m30)
#define FIRN_MEMBERS_31(as) FIRN_MEMBERS_30(as), as(m31)
#define FIRN_MEMBERS_32(as) FIRN_MEMBERS_31(as), as(m32)
#define FIRN_MEMBERS_33(as) FIRN_MEMBERS_32(as), as(m33)
#define FIRN_MEMBERS_34(as) FIRN_MEMBERS_33(as), as(m34)
#define FIRN_MEMBERS_35(as) FIRN_MEMBERS_34(as), as(m35)
#define FIRN_MEMBERS_36(as) FIRN_MEMBERS_35(as), as(m36)
#define FIRN_MEMBERS_37(as) FIRN_MEMBERS_36(as), as(m37)
#define FIRN_MEMBERS_38(as) FIRN_MEMBERS_37(as), as(m38)
#define FIRN_MEMBERS_39(as) FIRN_MEMBERS_38(as), as(m39)
#define FIRN_MEMBERS_40(as) FIRN_MEMBERS_39(as), as(m40)
#define FIRN_MEMBERS_41(as) FIRN_MEMBERS_40(as), as(m41)
#define FIRN_MEMBERS_42(as) FIRN_MEMBERS_41(as), as(m42)
#define FIRN_MEMBERS_43(as) FIRN_MEMBERS_42(as), as(m43)
#define FIRN_MEMBERS_44(as) FIRN_MEMBERS_43(as), as(m44)
#define FIRN_MEMBERS_45(as) FIRN_MEMBERS_44(as), as(m45)
#define FIRN_MEMBERS_46(as) FIRN_MEMBERS_45(as), as(m46)
#define FIRN_MEMBERS_47(as) FIRN_MEMBERS_46(as), as(m47)
#define FIRN_MEMBERS_48(as) FIRN_MEMBERS_47(as), as(m48)
#define FIRN_MEMBERS_49(as) FIRN_MEMBERS_48(as), as(m49)
#define FIRN_MEMBERS_50(as) FIRN_MEMBERS_49(as), as(m50)
#define FIRN_MEMBERS_51(as) FIRN_MEMBERS_50(as), as(m51)
#define FIRN_MEMBERS_52(as) FIRN_MEMBERS_51(as), as(m52)
#define FIRN_MEMBERS_53(as) FIRN_MEMBERS_52(as), as(m53)
#define FIRN_MEMBERS_54(as) FIRN_MEMBERS_53(as), as(m54)
#define FIRN_MEMBERS_55(as) FIRN_MEMBERS_54(as), as(m55)
#define FIRN_MEMBERS_56(as) FIRN_MEMBERS_55(as), as(m56)
#define FIRN_MEMBERS_57(as) FIRN_MEMBERS_56(as), as(m57)
#define FIRN_MEMBERS_58(as) FIRN_MEMBERS_57(as), as(m58)
#define FIRN_MEMBERS_59(as) FIRN_MEMBERS_58(as), as(m59)
#define FIRN_MEMBERS_60(as) FIRN_MEMBERS_59(as), as(m60)
#define FIRN_MEMBERS_61(as) FIRN_MEMBERS_60(as), as(m61)
#define FIRN_MEMBERS_62(as) FIRN_MEMBERS_61(as), as(m62)
#define FIRN_MEMBERS_63(as) FIRN_MEMBERS_62(as), as(m63)
#define FIRN_MEMBERS_64(as) FIRN_MEMBERS_63(as), as(m64)
#define FIRN_MEMBERS_65(as) FIRN_MEMBERS_64(as), as(m65)

/* Whether an aggregate has at least N members. */
template <class T, std::size_t N> inline constexpr bool has_members = false;

/* References to the members of an aggregate with N members. */
template <std::size_t N> struct tied;

#define FIRN_COUNTED(n)                                                                                                \
	template <class T> inline constexpr bool has_members<T, n> = requires { T{FIRN_MEMBERS_##n(FIRN_BRACES)}; };
#define FIRN_TIED(n)                                                                                                   \
	FIRN_COUNTED(n)                                                                                                \
	template <> struct tied<n> {                                                                                   \
		template <class T> static constexpr auto members(T &of)                                                \
		{                                                                                                      \
			auto &[FIRN_MEMBERS_##n(FIRN_NAME)] = of;                                                      \
			return std::tie(FIRN_MEMBERS_##n(FIRN_NAME));                                                  \
		}                                                                                                      \
	};
FIRN_TIED(1) FIRN_TIED(2) FIRN_TIED(3) FIRN_TIED(4) FIRN_TIED(5) FIRN_TIED(6) FIRN_TIED(7) FIRN_TIED(8) FIRN_TIED(9)
FIRN_TIED(10) FIRN_TIED(11) FIRN_TIED(12) FIRN_TIED(13) FIRN_TIED(14) FIRN_TIED(15) FIRN_TIED(16) FIRN_TIED(17)
FIRN_TIED(18) FIRN_TIED(19) FIRN_TIED(20) FIRN_TIED(21) FIRN_TIED(22) FIRN_TIED(23) FIRN_TIED(24) FIRN_TIED(25)
FIRN_TIED(26) FIRN_TIED(27) FIRN_TIED(28) FIRN_TIED(29) FIRN_TIED(30) FIRN_TIED(31) FIRN_TIED(32) FIRN_TIED(33)
FIRN_TIED(34) FIRN_TIED(35) FIRN_TIED(36) FIRN_TIED(37) FIRN_TIED(38) FIRN_TIED(39) FIRN_TIED(40) FIRN_TIED(41)
FIRN_TIED(42) FIRN_TIED(43) FIRN_TIED(44) FIRN_TIED(45) FIRN_TIED(46) FIRN_TIED(47) FIRN_TIED(48) FIRN_TIED(49)
FIRN_TIED(50) FIRN_TIED(51) FIRN_TIED(52) FIRN_TIED(53) FIRN_TIED(54) FIRN_TIED(55) FIRN_TIED(56) FIRN_TIED(57)
FIRN_TIED(58) FIRN_TIED(59) FIRN_TIED(60) FIRN_TIED(61) FIRN_TIED(62) FIRN_TIED(63) FIRN_TIED(64)
FIRN_COUNTED(65)
#undef FIRN_TIED
#undef FIRN_COUNTED
#undef FIRN_BRACES
#undef FIRN_NAME

template <class T, std::size_t N = 0> constexpr std::size_t count_members()
{
	if constexpr (has_members<T, N + 1>)
		return count_members<T, N + 1>();
	else
		return N;
}

/* The members of an aggregate, as references to them. */
template <class T> constexpr auto members(T &of)
{
	constexpr std::size_t count = count_members<std::remove_const_t<T>>();
	static_assert(count > 0, "firn: the type's members cannot be found; name its references with FIRN_REFERENCES");
	static_assert(count <= most_members, "firn: the type has more than 64 members, which are not found; put some into a "
					     "structure of their own, or name its references with FIRN_REFERENCES");
	if constexpr (count > 0 && count <= most_members)
		return tied<count>::members(of);
	else
		return std::tuple<>();
}

} // namespace firn::detail

#endif /* FIRN_MEMBERS_HPP */
