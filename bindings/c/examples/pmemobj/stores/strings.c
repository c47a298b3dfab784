/* An array of strings: a key is a place in it, a value a text of up to 127 characters. */
#include "store.h"

#include <string.h>

struct store {
	PMEMoid texts[STORE_KEYS];
};

enum { TEXT_TYPE = STORE_TYPE(0) };

/* A value as text: characters that can be printed, as many as its first byte says. */
static void to_text(const struct value *value, char text[VALUE_BYTES])
{
	size_t len = value->bytes[0] % VALUE_BYTES;
	for (size_t i = 0; i < len; i++)
		text[i] = (char)('a' + value->bytes[i] % 26);
	text[len] = 0;
}

static void from_text(const char *text, struct value *value)
{
	size_t len = strlen(text);
	memcpy(value->bytes, text, len);
	memset(value->bytes + len, 0, VALUE_BYTES - len);
}

TOID(struct store) store_new(void)
{
	return TX_ZNEW(struct store);
}

int store_put(PMEMobjpool *pop, TOID(struct store) store, uint64_t key, const struct value *value)
{
	PMEMoid there = D_RO(store)->texts[key];
	char text[VALUE_BYTES];
	to_text(value, text);
	TX_BEGIN(pop)
	{
		if (!OID_IS_NULL(there))
			pmemobj_tx_free(there);
		TX_SET(store, texts[key], TX_STRDUP(text, TEXT_TYPE));
	}
	TX_END
	return OID_IS_NULL(there);
}

int store_remove(PMEMobjpool *pop, TOID(struct store) store, uint64_t key)
{
	PMEMoid there = D_RO(store)->texts[key];
	if (OID_IS_NULL(there))
		return 0;
	TX_BEGIN(pop)
	{
		TX_SET(store, texts[key], OID_NULL);
		pmemobj_tx_free(there);
	}
	TX_END
	return 1;
}

int store_get(TOID(struct store) store, uint64_t key, struct value *value)
{
	PMEMoid there = D_RO(store)->texts[key];
	if (OID_IS_NULL(there))
		return 0;
	from_text(pmemobj_direct(there), value);
	return 1;
}

void store_each(TOID(struct store) store, store_visit *visit, void *argument)
{
	for (uint64_t key = 0; key < STORE_KEYS; key++) {
		struct value value;
		if (store_get(store, key, &value))
			visit(argument, key, &value);
	}
}

void store_each_oid(TOID(struct store) store, oid_visit *visit, void *argument)
{
	for (uint64_t key = 0; key < STORE_KEYS; key++)
		visit(argument, &D_RW(store)->texts[key]);
}

int store_is_sound(TOID(struct store) store)
{
	for (uint64_t key = 0; key < STORE_KEYS; key++) {
		PMEMoid text = D_RO(store)->texts[key];
		if (OID_IS_NULL(text))
			continue;
		if (pmemobj_type_num(text) != TEXT_TYPE)
			return 0;
		if (memchr(pmemobj_direct(text), 0, pmemobj_alloc_usable_size(text)) == NULL)
			return 0;
	}
	return 1;
}
