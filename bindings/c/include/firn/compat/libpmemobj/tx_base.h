/* What libpmemobj/tx_base.h declares, and more. */
#ifndef FIRN_COMPAT_LIBPMEMOBJ_TX_BASE_H
#define FIRN_COMPAT_LIBPMEMOBJ_TX_BASE_H

#include "../libpmemobj.h"

#endif
