/*
 * What firn.h does in the program itself: the read barrier, and the macros over the fields of a type. Included by firn.h.
 */
#ifndef FIRN_INLINE_H
#define FIRN_INLINE_H

#include "../firn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A cast that either language takes without a warning. */
#ifdef __cplusplus
#define FIRN_CAST(type, value) static_cast<type>(value)
#else
#define FIRN_CAST(type, value) ((type)(value))
#endif

/* The slow path of firn_follow: objects are being moved, or the transaction has stored something. */
const void *firn_follow_slow(firn_session *session, const firn_ref *field);

#define FIRN_LIKELY(condition) __builtin_expect(!!(condition), 1)

/* The object that the reference at `field`, in the pool, names, or null: the read barrier. One test, one load. */
static inline const void *firn_follow(firn_session *session, const firn_ref *field)
{
	if (FIRN_LIKELY(session->flags == 0)) {
		uint64_t word = __atomic_load_n(&field->word, __ATOMIC_RELAXED);
		return word & ~UINT64_C(15) ? session->objects + (word & session->mask) : NULL;
	}
	return firn_follow_slow(session, field);
}

/* A reference to an object, or to nothing, to be stored in this operation. */
static inline firn_ref firn_reference(const firn_session *session, const void *object)
{
	firn_ref reference = {0};
	if (object != NULL)
		reference.word = session->pool | FIRN_CAST(uint64_t, FIRN_CAST(const unsigned char *, object) - session->objects);
	return reference;
}

/* Reads a field. */
static inline void firn_load_field(firn_session *session, const void *object, size_t offset, void *into, size_t len)
{
	if (FIRN_LIKELY((session->flags & (FIRN_STORED | FIRN_QUIET)) == 0))
		memcpy(into, FIRN_CAST(const unsigned char *, object) + offset, len);
	else if (firn_load(session, object, offset, into, len) != FIRN_OK)
		memset(into, 0, len);
}

#ifdef __cplusplus
}

template <class T> T firn_loaded(firn_session *session, const void *object, size_t offset, const T *)
{
	T value;
	firn_load_field(session, object, offset, &value, sizeof value);
	return value;
}

/* The field's type without its object's const. */
#define FIRN_LOADED(session, object, field)                                                                            \
	firn_loaded((session), (object), offsetof(__typeof__(*(object)), field),                                       \
		    FIRN_CAST(__typeof__(&(object)->field), 0))
#else
#define FIRN_LOADED(session, object, field)                                                                            \
	__extension__({                                                                                                \
		union {                                                                                                \
			unsigned char bytes[sizeof((object)->field)];                                                  \
			__typeof__((object)->field) value;                                                             \
		} firn_loaded_;                                                                                        \
		firn_load_field((session), (object), offsetof(__typeof__(*(object)), field), firn_loaded_.bytes,      \
				sizeof firn_loaded_.bytes);                                                            \
		firn_loaded_.value;                                                                                    \
	})
#endif

/* Macros over the fields of a type ---------------------------------------------------------------------------- */

#define FIRN_SIZE(c_type, field) sizeof(FIRN_CAST(c_type *, 0)->field)
#define FIRN_FIELD(c_type, field)                                                                                      \
	{                                                                                                              \
		#field, FIRN_CAST(uint32_t, offsetof(c_type, field)),                                                  \
			FIRN_CAST(uint32_t,                                                                            \
				  FIRN_SIZE(c_type, field) +                                                           \
					  0 * sizeof(char[FIRN_SIZE(c_type, field) % sizeof(firn_ref) == 0 ? 1 : -1])) \
	}
/* Of a member in parentheses, (field) or (field, type). */
#define FIRN_MEMBER(c_type, member) FIRN_MEMBER_OF(c_type, FIRN_UNPACKED member)
#define FIRN_MEMBER_OF(c_type, ...) FIRN_PICK_MEMBER(__VA_ARGS__, FIRN_LEADING, FIRN_OTHER, )(c_type, __VA_ARGS__)
#define FIRN_UNPACKED(...) __VA_ARGS__
#define FIRN_PICK_MEMBER(_1, _2, picked, ...) picked
#define FIRN_LEADING(c_type, field, type) {FIRN_FIELD(c_type, field), FIRN_REFERENCE, sizeof(firn_ref), type##_led_to}
#define FIRN_OTHER(c_type, field)                                                                                      \
	{                                                                                                              \
		{#field, FIRN_CAST(uint32_t, offsetof(c_type, field)), FIRN_CAST(uint32_t, FIRN_SIZE(c_type, field))}, \
			FIRN_OPAQUE,                                                                                   \
			FIRN_CAST(uint32_t, FIRN_SIZE(c_type, field)) + FIRN_IS_NO_REFERENCE(c_type, field), NULL      \
	}
/* Zero; a reference whose type is not said does not compile, because nothing would follow it. */
#ifdef __cplusplus
#define FIRN_IS_NO_REFERENCE(c_type, field) 0
#else
#define FIRN_IS_NO_REFERENCE(c_type, field)                                                                            \
	0 * sizeof(char[__builtin_types_compatible_p(__typeof__(FIRN_CAST(c_type *, 0)->field), firn_ref) ? -1 : 1])
#endif
/* Declares what yields its type, which may be defined further down. */
#define FIRN_TYPE_LED_TO(c_type, member) FIRN_TYPE_LED_TO_OF(FIRN_UNPACKED member)
#define FIRN_TYPE_LED_TO_OF(...) FIRN_PICK_MEMBER(__VA_ARGS__, FIRN_DECLARED, FIRN_UNDECLARED, )(__VA_ARGS__)
#define FIRN_DECLARED(field, type) *type##_led_to(void)
#define FIRN_UNDECLARED(field) *firn_any_led_to(void)
/* Objects are aligned to 8 bytes. */
#define FIRN_SIZE_OF(c_type)                                                                                           \
	FIRN_CAST(uint32_t, sizeof(c_type) + 0 * sizeof(char[__alignof__(c_type) <= 8 ? 1 : -1]))
#define FIRN_EACH(what, c_type, ...)                                                                                   \
	FIRN_PICK(__VA_ARGS__, FIRN_64, FIRN_63, FIRN_62, FIRN_61, FIRN_60, FIRN_59, FIRN_58, FIRN_57, FIRN_56,        \
		  FIRN_55, FIRN_54, FIRN_53, FIRN_52, FIRN_51, FIRN_50, FIRN_49, FIRN_48, FIRN_47, FIRN_46, FIRN_45,   \
		  FIRN_44, FIRN_43, FIRN_42, FIRN_41, FIRN_40, FIRN_39, FIRN_38, FIRN_37, FIRN_36, FIRN_35, FIRN_34,   \
		  FIRN_33, FIRN_32, FIRN_31, FIRN_30, FIRN_29, FIRN_28, FIRN_27, FIRN_26, FIRN_25, FIRN_24, FIRN_23,   \
		  FIRN_22, FIRN_21, FIRN_20, FIRN_19, FIRN_18, FIRN_17, FIRN_16, FIRN_15, FIRN_14, FIRN_13, FIRN_12,   \
		  FIRN_11, FIRN_10, FIRN_9, FIRN_8, FIRN_7, FIRN_6, FIRN_5, FIRN_4, FIRN_3, FIRN_2, FIRN_1, )          \
	(what, c_type, __VA_ARGS__)
#define FIRN_PICK(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, _13, _14, _15, _16, _17, _18, _19, _20, _21,      \
		  _22, _23, _24, _25, _26, _27, _28, _29, _30, _31, _32, _33, _34, _35, _36, _37, _38, _39, _40, _41,  \
		  _42, _43, _44, _45, _46, _47, _48, _49, _50, _51, _52, _53, _54, _55, _56, _57, _58, _59, _60, _61,  \
		  _62, _63, _64, picked, ...)                                                                          \
	picked
#define FIRN_1(what, c_type, field) what(c_type, field)
#define FIRN_2(what, c_type, field, ...) what(c_type, field), FIRN_1(what, c_type, __VA_ARGS__)
#define FIRN_3(what, c_type, field, ...) what(c_type, field), FIRN_2(what, c_type, __VA_ARGS__)
#define FIRN_4(what, c_type, field, ...) what(c_type, field), FIRN_3(what, c_type, __VA_ARGS__)
#define FIRN_5(what, c_type, field, ...) what(c_type, field), FIRN_4(what, c_type, __VA_ARGS__)
#define FIRN_6(what, c_type, field, ...) what(c_type, field), FIRN_5(what, c_type, __VA_ARGS__)
#define FIRN_7(what, c_type, field, ...) what(c_type, field), FIRN_6(what, c_type, __VA_ARGS__)
#define FIRN_8(what, c_type, field, ...) what(c_type, field), FIRN_7(what, c_type, __VA_ARGS__)
#define FIRN_9(what, c_type, field, ...) what(c_type, field), FIRN_8(what, c_type, __VA_ARGS__)
#define FIRN_10(what, c_type, field, ...) what(c_type, field), FIRN_9(what, c_type, __VA_ARGS__)
#define FIRN_11(what, c_type, field, ...) what(c_type, field), FIRN_10(what, c_type, __VA_ARGS__)
#define FIRN_12(what, c_type, field, ...) what(c_type, field), FIRN_11(what, c_type, __VA_ARGS__)
#define FIRN_13(what, c_type, field, ...) what(c_type, field), FIRN_12(what, c_type, __VA_ARGS__)
#define FIRN_14(what, c_type, field, ...) what(c_type, field), FIRN_13(what, c_type, __VA_ARGS__)
#define FIRN_15(what, c_type, field, ...) what(c_type, field), FIRN_14(what, c_type, __VA_ARGS__)
#define FIRN_16(what, c_type, field, ...) what(c_type, field), FIRN_15(what, c_type, __VA_ARGS__)
#define FIRN_17(what, c_type, field, ...) what(c_type, field), FIRN_16(what, c_type, __VA_ARGS__)
#define FIRN_18(what, c_type, field, ...) what(c_type, field), FIRN_17(what, c_type, __VA_ARGS__)
#define FIRN_19(what, c_type, field, ...) what(c_type, field), FIRN_18(what, c_type, __VA_ARGS__)
#define FIRN_20(what, c_type, field, ...) what(c_type, field), FIRN_19(what, c_type, __VA_ARGS__)
#define FIRN_21(what, c_type, field, ...) what(c_type, field), FIRN_20(what, c_type, __VA_ARGS__)
#define FIRN_22(what, c_type, field, ...) what(c_type, field), FIRN_21(what, c_type, __VA_ARGS__)
#define FIRN_23(what, c_type, field, ...) what(c_type, field), FIRN_22(what, c_type, __VA_ARGS__)
#define FIRN_24(what, c_type, field, ...) what(c_type, field), FIRN_23(what, c_type, __VA_ARGS__)
#define FIRN_25(what, c_type, field, ...) what(c_type, field), FIRN_24(what, c_type, __VA_ARGS__)
#define FIRN_26(what, c_type, field, ...) what(c_type, field), FIRN_25(what, c_type, __VA_ARGS__)
#define FIRN_27(what, c_type, field, ...) what(c_type, field), FIRN_26(what, c_type, __VA_ARGS__)
#define FIRN_28(what, c_type, field, ...) what(c_type, field), FIRN_27(what, c_type, __VA_ARGS__)
#define FIRN_29(what, c_type, field, ...) what(c_type, field), FIRN_28(what, c_type, __VA_ARGS__)
#define FIRN_30(what, c_type, field, ...) what(c_type, field), FIRN_29(what, c_type, __VA_ARGS__)
#define FIRN_31(what, c_type, field, ...) what(c_type, field), FIRN_30(what, c_type, __VA_ARGS__)
#define FIRN_32(what, c_type, field, ...) what(c_type, field), FIRN_31(what, c_type, __VA_ARGS__)
#define FIRN_33(what, c_type, field, ...) what(c_type, field), FIRN_32(what, c_type, __VA_ARGS__)
#define FIRN_34(what, c_type, field, ...) what(c_type, field), FIRN_33(what, c_type, __VA_ARGS__)
#define FIRN_35(what, c_type, field, ...) what(c_type, field), FIRN_34(what, c_type, __VA_ARGS__)
#define FIRN_36(what, c_type, field, ...) what(c_type, field), FIRN_35(what, c_type, __VA_ARGS__)
#define FIRN_37(what, c_type, field, ...) what(c_type, field), FIRN_36(what, c_type, __VA_ARGS__)
#define FIRN_38(what, c_type, field, ...) what(c_type, field), FIRN_37(what, c_type, __VA_ARGS__)
#define FIRN_39(what, c_type, field, ...) what(c_type, field), FIRN_38(what, c_type, __VA_ARGS__)
#define FIRN_40(what, c_type, field, ...) what(c_type, field), FIRN_39(what, c_type, __VA_ARGS__)
#define FIRN_41(what, c_type, field, ...) what(c_type, field), FIRN_40(what, c_type, __VA_ARGS__)
#define FIRN_42(what, c_type, field, ...) what(c_type, field), FIRN_41(what, c_type, __VA_ARGS__)
#define FIRN_43(what, c_type, field, ...) what(c_type, field), FIRN_42(what, c_type, __VA_ARGS__)
#define FIRN_44(what, c_type, field, ...) what(c_type, field), FIRN_43(what, c_type, __VA_ARGS__)
#define FIRN_45(what, c_type, field, ...) what(c_type, field), FIRN_44(what, c_type, __VA_ARGS__)
#define FIRN_46(what, c_type, field, ...) what(c_type, field), FIRN_45(what, c_type, __VA_ARGS__)
#define FIRN_47(what, c_type, field, ...) what(c_type, field), FIRN_46(what, c_type, __VA_ARGS__)
#define FIRN_48(what, c_type, field, ...) what(c_type, field), FIRN_47(what, c_type, __VA_ARGS__)
#define FIRN_49(what, c_type, field, ...) what(c_type, field), FIRN_48(what, c_type, __VA_ARGS__)
#define FIRN_50(what, c_type, field, ...) what(c_type, field), FIRN_49(what, c_type, __VA_ARGS__)
#define FIRN_51(what, c_type, field, ...) what(c_type, field), FIRN_50(what, c_type, __VA_ARGS__)
#define FIRN_52(what, c_type, field, ...) what(c_type, field), FIRN_51(what, c_type, __VA_ARGS__)
#define FIRN_53(what, c_type, field, ...) what(c_type, field), FIRN_52(what, c_type, __VA_ARGS__)
#define FIRN_54(what, c_type, field, ...) what(c_type, field), FIRN_53(what, c_type, __VA_ARGS__)
#define FIRN_55(what, c_type, field, ...) what(c_type, field), FIRN_54(what, c_type, __VA_ARGS__)
#define FIRN_56(what, c_type, field, ...) what(c_type, field), FIRN_55(what, c_type, __VA_ARGS__)
#define FIRN_57(what, c_type, field, ...) what(c_type, field), FIRN_56(what, c_type, __VA_ARGS__)
#define FIRN_58(what, c_type, field, ...) what(c_type, field), FIRN_57(what, c_type, __VA_ARGS__)
#define FIRN_59(what, c_type, field, ...) what(c_type, field), FIRN_58(what, c_type, __VA_ARGS__)
#define FIRN_60(what, c_type, field, ...) what(c_type, field), FIRN_59(what, c_type, __VA_ARGS__)
#define FIRN_61(what, c_type, field, ...) what(c_type, field), FIRN_60(what, c_type, __VA_ARGS__)
#define FIRN_62(what, c_type, field, ...) what(c_type, field), FIRN_61(what, c_type, __VA_ARGS__)
#define FIRN_63(what, c_type, field, ...) what(c_type, field), FIRN_62(what, c_type, __VA_ARGS__)
#define FIRN_64(what, c_type, field, ...) what(c_type, field), FIRN_63(what, c_type, __VA_ARGS__)

#endif /* FIRN_INLINE_H */
