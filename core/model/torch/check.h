#pragma once
// base/check.h for files that include libtorch: its logging headers define macros of the same
// names, which are taken away here. Comes after every libtorch header, which clang-format's order
// of includes sees to.
//
// Thread contract: any thread.

#undef CHECK
#undef CHECK_EQ
#undef CHECK_NE
#undef CHECK_LT
#undef CHECK_LE
#undef CHECK_GT
#undef CHECK_GE

#include "base/check.h"
