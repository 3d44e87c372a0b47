/* For compilers that have their own openacc.h: this folder has none. */
#include <peerway/xacc/xmp.h>
