// The C functions that belong to no object: names of statuses, the last message, the version.
#include "base/status.h"
#include "peerway/peerway.h"

const char* pw_status_name(pw_status status) {
  switch (status) {
    case PW_OK:
      return "ok";
    case PW_TIMEOUT:
      return "timeout";
    case PW_PEER_LOST:
      return "peer_lost";
    case PW_INVALID_ARGUMENT:
      return "invalid_argument";
    case PW_OUT_OF_RANGE:
      return "out_of_range";
    case PW_BAD_KEY:
      return "bad_key";
    case PW_STALE_KEY:
      return "stale_key";
    case PW_FOREIGN_KEY:
      return "foreign_key";
    case PW_UNSUPPORTED:
      return "unsupported";
    case PW_UNAVAILABLE:
      return "unavailable";
    case PW_NO_MEMORY:
      return "no_memory";
    case PW_DENIED:
      return "denied";
    case PW_SYSTEM:
      return "system";
    case PW_DEVICE:
      return "device";
    case PW_BAD_TABLE:
      return "bad_table";
    case PW_BAD_CONFIG:
      return "bad_config";
    case PW_CLOSED:
      return "closed";
    case PW_INTERNAL:
      return "internal";
    case PW_INTERRUPTED:
      return "interrupted";
  }
  return "unknown";
}

const char* pw_error_message(void) { return pw::last_error_message_with_name(); }

const char* pw_version(void) { return PEERWAY_VERSION; }

int pw_abi_version(void) { return PW_ABI_VERSION; }
