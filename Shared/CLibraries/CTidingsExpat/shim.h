#ifndef CTIDINGS_EXPAT_SHIM_H
#define CTIDINGS_EXPAT_SHIM_H
#if !__has_include(<expat.h>)
#error "Tidings needs expat: install the Debian package libexpat1-dev"
#else
#include <expat.h>
#endif
#endif
