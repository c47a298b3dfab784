/* What libpmemobj/tx.h declares, and more. */
#ifndef FIRN_COMPAT_LIBPMEMOBJ_TX_H
#define FIRN_COMPAT_LIBPMEMOBJ_TX_H

#include "../libpmemobj.h"

#endif
