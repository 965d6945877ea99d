#ifndef CTIDINGS_ROARING_SHIM_H
#define CTIDINGS_ROARING_SHIM_H
#if !__has_include(<roaring/roaring.h>)
#error "Tidings needs CRoaring: install the Debian package libroaring-dev"
#else
#include <roaring/roaring.h>
#endif
#endif
