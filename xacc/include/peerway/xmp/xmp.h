/* For compilers that have an openacc.h of their own: this folder has none. */
#include <peerway/xacc/xmp.h>
