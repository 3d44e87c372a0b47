// The part of UCX's binary interface that Peerway calls: facts about <ucp/api/ucp.h>, so that the library
// builds with no UCX installed. Names are UCX's own. Structures end at the fields that UCX 1.13 has; newer
// versions only append, and read and write nothing that is not in field_mask.
// library/tests/python/test_ucp_abi.py compares every structure, constant and function here with the real
// headers.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace pw::ucp_abi {

using ucs_status_t = int8_t;
using ucs_status_ptr_t = void*;  ///< a status, or a request when it is a pointer

struct ucp_context;
struct ucp_worker;
struct ucp_ep;
struct ucp_mem;
struct ucp_rkey;
struct ucp_config_t;
struct ucp_address_t;
using ucp_context_h = ucp_context*;
using ucp_worker_h = ucp_worker*;
using ucp_ep_h = ucp_ep*;
using ucp_mem_h = ucp_mem*;
using ucp_rkey_h = ucp_rkey*;

/// Name and value.
// clang-format off: one constant a line
#define PW_UCP_CONSTANTS(X) \
  X(UCS_OK, 0) \
  X(UCS_INPROGRESS, 1) \
  X(UCS_ERR_NO_MEMORY, -4) \
  X(UCS_ERR_UNREACHABLE, -6) \
  X(UCS_ERR_BUSY, -15) \
  X(UCS_ERR_CANCELED, -16) \
  X(UCS_ERR_UNSUPPORTED, -22) \
  X(UCS_ERR_NOT_CONNECTED, -24) \
  X(UCS_ERR_CONNECTION_RESET, -25) \
  X(UCS_ERR_FIRST_LINK_FAILURE, -40) \
  X(UCS_ERR_LAST_ENDPOINT_FAILURE, -89) \
  X(UCS_ERR_LAST, -100) \
  X(UCS_THREAD_MODE_SERIALIZED, 1) \
  X(UCS_MEMORY_TYPE_HOST, 0) \
  X(UCP_PARAM_FIELD_FEATURES, 1) \
  X(UCP_PARAM_FIELD_ESTIMATED_NUM_EPS, 64) \
  X(UCP_FEATURE_RMA, 2) \
  X(UCP_FEATURE_WAKEUP, 16) \
  X(UCP_FEATURE_AM, 64) \
  X(UCP_ATTR_FIELD_MEMORY_TYPES, 4) \
  X(UCP_WORKER_PARAM_FIELD_THREAD_MODE, 1) \
  X(UCP_WORKER_ATTR_FIELD_ADDRESS, 2) \
  X(UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, 1) \
  X(UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE, 2) \
  X(UCP_EP_PARAM_FIELD_ERR_HANDLER, 4) \
  X(UCP_ERR_HANDLING_MODE_PEER, 1) \
  X(UCP_EP_CLOSE_FLAG_FORCE, 1) \
  X(UCP_MEM_MAP_PARAM_FIELD_ADDRESS, 1) \
  X(UCP_MEM_MAP_PARAM_FIELD_LENGTH, 2) \
  X(UCP_AM_SEND_FLAG_EAGER, 2) \
  X(UCP_OP_ATTR_FIELD_CALLBACK, 2) \
  X(UCP_OP_ATTR_FIELD_USER_DATA, 4) \
  X(UCP_OP_ATTR_FIELD_DATATYPE, 8) \
  X(UCP_OP_ATTR_FIELD_FLAGS, 16) \
  X(UCP_OP_ATTR_FIELD_MEMORY_TYPE, 64) \
  X(UCP_OP_ATTR_FIELD_MEMH, 256) \
  X(UCP_AM_HANDLER_PARAM_FIELD_ID, 1) \
  X(UCP_AM_HANDLER_PARAM_FIELD_CB, 4) \
  X(UCP_AM_HANDLER_PARAM_FIELD_ARG, 8) \
  X(UCP_AM_RECV_ATTR_FLAG_DATA, 65536) \
  X(UCP_AM_RECV_ATTR_FLAG_RNDV, 131072)
// clang-format on

#define PW_UCP_DECLARE(name, value) inline constexpr int64_t name = value;
PW_UCP_CONSTANTS(PW_UCP_DECLARE)
#undef PW_UCP_DECLARE

/// Room for the fields that newer versions append.
struct Appended {
  std::byte room[64];
};

struct ucp_params_t {
  uint64_t field_mask;
  uint64_t features;
  size_t request_size;
  void* request_init;
  void* request_cleanup;
  uint64_t tag_sender_mask;
  int mt_workers_shared;
  size_t estimated_num_eps;
  size_t estimated_num_ppn;
  const char* name;
  Appended appended;
};

struct ucp_context_attr_t {
  uint64_t field_mask;
  size_t request_size;
  int thread_mode;
  uint64_t memory_types;
  char name[32];
  Appended appended;
};

struct ucp_worker_params_t {
  uint64_t field_mask;
  int thread_mode;
  uint64_t cpu_mask[16];
  unsigned events;
  void* user_data;
  int event_fd;
  uint64_t flags;
  const char* name;
  Appended appended;
};

struct ucp_worker_attr_t {
  uint64_t field_mask;
  int thread_mode;
  uint32_t address_flags;
  ucp_address_t* address;
  size_t address_length;
  size_t max_am_header;
  char name[32];
  size_t max_debug_string;
  Appended appended;
};

struct ucs_sock_addr_t {
  const sockaddr* addr;
  socklen_t addrlen;
};

struct ucp_err_handler_t {
  void (*cb)(void* arg, ucp_ep_h ep, ucs_status_t status);
  void* arg;
};

struct ucp_ep_params_t {
  uint64_t field_mask;
  const ucp_address_t* address;
  int err_mode;
  ucp_err_handler_t err_handler;
  void* user_data;
  unsigned flags;
  ucs_sock_addr_t sockaddr;
  void* conn_request;
  const char* name;
  Appended appended;
};

struct ucp_mem_map_params_t {
  uint64_t field_mask;
  void* address;
  size_t length;
  unsigned flags;
  unsigned prot;
  int memory_type;
  Appended appended;
};

using ucp_send_nbx_callback_t = void (*)(void* request, ucs_status_t status, void* user_data);
using ucp_am_recv_data_nbx_callback_t = void (*)(void* request, ucs_status_t status, size_t length,
                                                 void* user_data);

struct ucp_request_param_t {
  uint32_t op_attr_mask;
  uint32_t flags;
  void* request;
  union {
    ucp_send_nbx_callback_t send;
    ucp_am_recv_data_nbx_callback_t recv_am;
  } cb;
  uint64_t datatype;
  void* user_data;
  void* reply_buffer;
  int memory_type;
  void* recv_info;
  ucp_mem_h memh;
  Appended appended;
};

struct ucp_generic_dt_ops_t {
  void* (*start_pack)(void* context, const void* buffer, size_t count);
  void* (*start_unpack)(void* context, void* buffer, size_t count);
  size_t (*packed_size)(void* state);
  size_t (*pack)(void* state, size_t offset, void* dest, size_t max_length);
  ucs_status_t (*unpack)(void* state, size_t offset, const void* src, size_t length);
  void (*finish)(void* state);
};

struct ucp_am_recv_param_t {
  uint64_t recv_attr;
  ucp_ep_h reply_ep;
};

using ucp_am_recv_callback_t = ucs_status_t (*)(void* arg, const void* header, size_t header_length,
                                                void* data, size_t length, const ucp_am_recv_param_t* param);

struct ucp_am_handler_param_t {
  uint64_t field_mask;
  unsigned id;
  uint32_t flags;
  ucp_am_recv_callback_t cb;
  void* arg;
};

/// Result, name and parameters of every function that is called.
#define PW_UCP_FUNCTIONS(X)                                                                      \
  X(void, ucp_get_version, (unsigned*, unsigned*, unsigned*))                                    \
  X(ucs_status_t, ucp_init_version,                                                              \
    (unsigned, unsigned, const ucp_params_t*, const ucp_config_t*, ucp_context_h*))              \
  X(void, ucp_cleanup, (ucp_context_h))                                                          \
  X(ucs_status_t, ucp_context_query, (ucp_context_h, ucp_context_attr_t*))                       \
  X(ucs_status_t, ucp_worker_create, (ucp_context_h, const ucp_worker_params_t*, ucp_worker_h*)) \
  X(void, ucp_worker_destroy, (ucp_worker_h))                                                    \
  X(ucs_status_t, ucp_worker_query, (ucp_worker_h, ucp_worker_attr_t*))                          \
  X(void, ucp_worker_release_address, (ucp_worker_h, ucp_address_t*))                            \
  X(unsigned, ucp_worker_progress, (ucp_worker_h))                                               \
  X(ucs_status_t, ucp_worker_get_efd, (ucp_worker_h, int*))                                      \
  X(ucs_status_t, ucp_worker_arm, (ucp_worker_h))                                                \
  X(ucs_status_t, ucp_ep_create, (ucp_worker_h, const ucp_ep_params_t*, ucp_ep_h*))              \
  X(void, ucp_ep_print_info, (ucp_ep_h, FILE*))                                                  \
  X(ucs_status_ptr_t, ucp_ep_close_nbx, (ucp_ep_h, const ucp_request_param_t*))                  \
  X(ucs_status_ptr_t, ucp_ep_flush_nbx, (ucp_ep_h, const ucp_request_param_t*))                  \
  X(ucs_status_t, ucp_mem_map, (ucp_context_h, const ucp_mem_map_params_t*, ucp_mem_h*))         \
  X(ucs_status_t, ucp_mem_unmap, (ucp_context_h, ucp_mem_h))                                     \
  X(ucs_status_t, ucp_rkey_pack, (ucp_context_h, ucp_mem_h, void**, size_t*))                    \
  X(void, ucp_rkey_buffer_release, (void*))                                                      \
  X(ucs_status_t, ucp_ep_rkey_unpack, (ucp_ep_h, const void*, ucp_rkey_h*))                      \
  X(void, ucp_rkey_destroy, (ucp_rkey_h))                                                        \
  X(ucs_status_ptr_t, ucp_put_nbx,                                                               \
    (ucp_ep_h, const void*, size_t, uint64_t, ucp_rkey_h, const ucp_request_param_t*))           \
  X(ucs_status_ptr_t, ucp_get_nbx,                                                               \
    (ucp_ep_h, void*, size_t, uint64_t, ucp_rkey_h, const ucp_request_param_t*))                 \
  X(ucs_status_t, ucp_worker_set_am_recv_handler, (ucp_worker_h, const ucp_am_handler_param_t*)) \
  X(ucs_status_ptr_t, ucp_am_send_nbx,                                                           \
    (ucp_ep_h, unsigned, const void*, size_t, const void*, size_t, const ucp_request_param_t*))  \
  X(ucs_status_ptr_t, ucp_am_recv_data_nbx,                                                      \
    (ucp_worker_h, void*, void*, size_t, const ucp_request_param_t*))                            \
  X(void, ucp_am_data_release, (ucp_worker_h, void*))                                            \
  X(ucs_status_t, ucp_dt_create_generic, (const ucp_generic_dt_ops_t*, void*, uint64_t*))        \
  X(void, ucp_dt_destroy, (uint64_t))                                                            \
  X(ucs_status_t, ucp_request_check_status, (void*))                                             \
  X(void, ucp_request_free, (void*))                                                             \
  X(const char*, ucs_status_string, (ucs_status_t))

/// A pointer to each of them.
struct Functions {
#define PW_UCP_POINTER(result, name, parameters) result(*name) parameters = nullptr;
  PW_UCP_FUNCTIONS(PW_UCP_POINTER)
#undef PW_UCP_POINTER
};

inline bool is_request(ucs_status_ptr_t answer) {
  return reinterpret_cast<uintptr_t>(answer) - 1 < static_cast<uintptr_t>(UCS_ERR_LAST) - 1;
}
inline ucs_status_t status_of(ucs_status_ptr_t answer) {
  return is_request(answer) ? static_cast<ucs_status_t>(UCS_INPROGRESS)
                            : static_cast<ucs_status_t>(reinterpret_cast<intptr_t>(answer));
}

}  // namespace pw::ucp_abi
