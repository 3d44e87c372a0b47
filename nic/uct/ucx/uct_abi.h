// The part of UCX's transport interface (libuct) that this transport implements and calls: facts about
// headers that UCX does not install, so that all builds need no more than the compiler. Names are UCX's own.
// This file is compiled once for each minor version of UCX that is supported, PW_UCX_MINOR: the structures
// change between them, and what is declared here for one is wrong for another, which is why preload.cpp
// compares versions first. nic/tests/python/test_uct_abi.py compares what Debian's libucx-dev installs with
// what is here.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#if PW_UCX_MINOR != 13 && PW_UCX_MINOR != 20 && PW_UCX_MINOR != 22
#error "no declarations for this version of UCX"
#endif
#define PW_UCX_SINCE(minor) (PW_UCX_MINOR >= (minor))

// A namespace for each version: the builds are linked into one library.
#define PW_UCX_JOIN_(name, minor) name##minor
#define PW_UCX_JOIN(name, minor) PW_UCX_JOIN_(name, minor)
#define PW_UCX PW_UCX_JOIN(ucx_1_, PW_UCX_MINOR)

namespace pw::uct::PW_UCX {

using ucs_status_t = int8_t;
using ucs_status_ptr_t = void*;
using ucs_memory_type_t = int;
using ucs_sys_device_t = uint8_t;
using uct_rkey_t = uintptr_t;
using uct_mem_h = void*;
using uct_unused = void (*)();  ///< an entry that is never called, or answers "unsupported"

inline constexpr ucs_status_t UCS_OK = 0;
inline constexpr ucs_status_t UCS_INPROGRESS = 1;
inline constexpr ucs_status_t UCS_ERR_NO_RESOURCE = -2;
inline constexpr ucs_status_t UCS_ERR_IO_ERROR = -3;
inline constexpr ucs_status_t UCS_ERR_NO_MEMORY = -4;
inline constexpr ucs_status_t UCS_ERR_INVALID_PARAM = -5;
inline constexpr ucs_status_t UCS_ERR_UNREACHABLE = -6;
inline constexpr ucs_status_t UCS_ERR_INVALID_ADDR = -7;
inline constexpr ucs_status_t UCS_ERR_BUSY = -15;
inline constexpr ucs_status_t UCS_ERR_UNSUPPORTED = -22;
inline constexpr ucs_status_t UCS_ERR_CONNECTION_RESET = -25;

inline constexpr int UCT_AM_ID_MAX = 32;
inline constexpr unsigned UCT_DEVICE_TYPE_NET = 0;
inline constexpr unsigned UCT_ALLOC_METHOD_LAST = 5;
inline constexpr ucs_sys_device_t UCS_SYS_DEVICE_ID_UNKNOWN = 255;
inline constexpr int UCS_MEMORY_TYPE_HOST = 0;
inline constexpr int UCS_MEMORY_TYPE_CUDA = 1;

inline constexpr uint64_t UCT_IFACE_FLAG_AM_SHORT = 1u << 0;
inline constexpr uint64_t UCT_IFACE_FLAG_AM_BCOPY = 1u << 1;
inline constexpr uint64_t UCT_IFACE_FLAG_PENDING = 1u << 3;
inline constexpr uint64_t UCT_IFACE_FLAG_PUT_SHORT = 1u << 4;
inline constexpr uint64_t UCT_IFACE_FLAG_PUT_BCOPY = 1u << 5;
inline constexpr uint64_t UCT_IFACE_FLAG_PUT_ZCOPY = 1u << 6;
inline constexpr uint64_t UCT_IFACE_FLAG_GET_BCOPY = 1u << 9;
inline constexpr uint64_t UCT_IFACE_FLAG_GET_ZCOPY = 1u << 10;
inline constexpr uint64_t UCT_IFACE_FLAG_ERRHANDLE_PEER_FAILURE = 1ull << 38;
inline constexpr uint64_t UCT_IFACE_FLAG_EP_CHECK = 1ull << 39;
inline constexpr uint64_t UCT_IFACE_FLAG_CONNECT_TO_IFACE = 1ull << 40;
inline constexpr uint64_t UCT_IFACE_FLAG_CB_SYNC = 1ull << 44;
inline constexpr uint64_t UCT_IFACE_FLAG_INTER_NODE = PW_UCX_SINCE(20) ? 1ull << 54 : 0;

inline constexpr uint64_t UCT_MD_FLAG_REG = 1u << 1;
inline constexpr uint64_t UCT_MD_FLAG_NEED_MEMH = 1u << 2;
inline constexpr uint64_t UCT_MD_FLAG_NEED_RKEY = 1u << 3;
inline constexpr uint64_t UCT_MD_MEM_FLAG_HIDE_ERRORS = 1u << 3;
inline constexpr uint64_t UCT_MD_MEM_REG_FIELD_FLAGS = 1u << 0;
inline constexpr uint64_t UCT_MD_MEM_DEREG_FIELD_MEMH = 1u << 0;

inline constexpr uint64_t UCT_EP_PARAM_FIELD_IFACE = 1u << 0;
inline constexpr uint64_t UCT_EP_PARAM_FIELD_DEV_ADDR = 1u << 2;
inline constexpr uint64_t UCT_EP_PARAM_FIELD_IFACE_ADDR = 1u << 3;
inline constexpr uint64_t UCT_IFACE_IS_REACHABLE_FIELD_DEVICE_ADDR = 1u << 0;
inline constexpr unsigned UCT_PROGRESS_SEND_RECV = 3;

struct ucs_list_link_t {
  ucs_list_link_t* prev;
  ucs_list_link_t* next;
};

struct ucs_config_field_t;  // a table ends at a null name; UCX's own tables are used as they are

struct ucs_config_global_list_entry_t {
  const char* name;
  const char* prefix;
  ucs_config_field_t* table;
  size_t size;
  ucs_list_link_t list;
#if PW_UCX_SINCE(20)
  uint8_t flags;
#endif
};

struct ucs_class_t {
  const char* name;
  size_t size;
  ucs_class_t* superclass;
  void* init;
  void* cleanup;
};

struct ucs_linear_func_t {
  double c;
  double m;
};

struct ucs_cpu_set_t {
  uint64_t ucs_bits[16];
};

struct uct_completion_t {
  void (*func)(uct_completion_t* self);
  int count;
  ucs_status_t status;
};

struct uct_iov_t {
  void* buffer;
  size_t length;
  uct_mem_h memh;
  size_t stride;
  unsigned count;
};

struct uct_pending_req_t {
  ucs_status_t (*func)(uct_pending_req_t* self);
  char priv[40];
};

struct uct_iface_t;
struct uct_ep_t;
struct uct_md_t;
struct uct_component_t;
struct uct_worker_t;
struct uct_iface_attr_t;
struct uct_ep_params_t;

using uct_pack_callback_t = size_t (*)(void* destination, void* arg);
using uct_unpack_callback_t = void (*)(void* arg, const void* data, size_t length);
using uct_am_callback_t = ucs_status_t (*)(void* arg, void* data, size_t length, unsigned flags);
using uct_error_handler_t = ucs_status_t (*)(void* arg, uct_ep_t* ep, ucs_status_t status);
using uct_pending_purge_callback_t = void (*)(uct_pending_req_t* self, void* arg);

struct uct_iface_ops_t {
  ucs_status_t (*ep_put_short)(uct_ep_t*, const void*, unsigned, uint64_t, uct_rkey_t);
  ssize_t (*ep_put_bcopy)(uct_ep_t*, uct_pack_callback_t, void*, uint64_t, uct_rkey_t);
  ucs_status_t (*ep_put_zcopy)(uct_ep_t*, const uct_iov_t*, size_t, uint64_t, uct_rkey_t, uct_completion_t*);
  uct_unused ep_get_short;
  ucs_status_t (*ep_get_bcopy)(uct_ep_t*, uct_unpack_callback_t, void*, size_t, uint64_t, uct_rkey_t,
                               uct_completion_t*);
  ucs_status_t (*ep_get_zcopy)(uct_ep_t*, const uct_iov_t*, size_t, uint64_t, uct_rkey_t, uct_completion_t*);
  ucs_status_t (*ep_am_short)(uct_ep_t*, uint8_t, uint64_t, const void*, unsigned);
  ucs_status_t (*ep_am_short_iov)(uct_ep_t*, uint8_t, const uct_iov_t*, size_t);
  ssize_t (*ep_am_bcopy)(uct_ep_t*, uint8_t, uct_pack_callback_t, void*, unsigned);
  uct_unused ep_am_zcopy;
  uct_unused ep_atomic[6];
  uct_unused ep_tag[6];
  uct_unused iface_tag[2];
  ucs_status_t (*ep_pending_add)(uct_ep_t*, uct_pending_req_t*, unsigned);
  void (*ep_pending_purge)(uct_ep_t*, uct_pending_purge_callback_t, void*);
  ucs_status_t (*ep_flush)(uct_ep_t*, unsigned, uct_completion_t*);
  ucs_status_t (*ep_fence)(uct_ep_t*, unsigned);
  ucs_status_t (*ep_check)(uct_ep_t*, unsigned, uct_completion_t*);
  ucs_status_t (*ep_create)(const uct_ep_params_t*, uct_ep_t**);
  uct_unused ep_connect;
  uct_unused ep_disconnect;
  uct_unused cm_ep_conn_notify;
  void (*ep_destroy)(uct_ep_t*);
  uct_unused ep_get_address;
  uct_unused ep_connect_to_ep;
  uct_unused iface_accept;
  uct_unused iface_reject;
  ucs_status_t (*iface_flush)(uct_iface_t*, unsigned, uct_completion_t*);
  ucs_status_t (*iface_fence)(uct_iface_t*, unsigned);
  void (*iface_progress_enable)(uct_iface_t*, unsigned);
  void (*iface_progress_disable)(uct_iface_t*, unsigned);
  unsigned (*iface_progress)(uct_iface_t*);
  uct_unused iface_event_fd_get;
  uct_unused iface_event_arm;
  void (*iface_close)(uct_iface_t*);
  ucs_status_t (*iface_query)(uct_iface_t*, uct_iface_attr_t*);
  ucs_status_t (*iface_get_device_address)(uct_iface_t*, void*);
  ucs_status_t (*iface_get_address)(uct_iface_t*, void*);
  int (*iface_is_reachable)(uct_iface_t*, const void* device_address, const void* iface_address);
};

struct uct_iface_t {
  uct_iface_ops_t ops;
};

struct uct_ep_t {
  uct_iface_t* iface;
};

struct uct_ppn_bandwidth_t {
  double dedicated;
  double shared;
};

struct uct_iface_cap_rma_t {
  size_t max_short, max_bcopy, min_zcopy, max_zcopy, opt_zcopy_align, align_mtu, max_iov;
};

struct uct_iface_attr_t {
  struct {
    uct_iface_cap_rma_t put, get;
    struct {
      size_t max_short, max_bcopy, min_zcopy, max_zcopy, opt_zcopy_align, align_mtu, max_hdr, max_iov;
    } am;
    size_t tag[11];
    uint64_t atomic32[2], atomic64[2];
    uint64_t flags;
    uint64_t event_flags;
  } cap;
  size_t device_addr_len;
  size_t iface_addr_len;
  size_t ep_addr_len;
  size_t max_conn_priv;
  sockaddr_storage listen_sockaddr;
  double overhead;
  uct_ppn_bandwidth_t bandwidth;
  ucs_linear_func_t latency;
  uint8_t priority;
  size_t max_num_eps;
  unsigned dev_num_paths;
#if PW_UCX_SINCE(22)
  ucs_sys_device_t ctl_device;
#endif
};

struct uct_iface_params_t;  // handed on to the base class only
struct uct_perf_attr_t;
struct uct_iface_attr_v2_t;

struct uct_ep_params_t {
  uint64_t field_mask;
  uct_iface_t* iface;
  void* user_data;
  const void* dev_addr;
  const void* iface_addr;
  // more follows, which is for other kinds of connection
};

#if PW_UCX_SINCE(20)
struct uct_iface_is_reachable_params_t {
  uint64_t field_mask;
  const void* device_addr;
  const void* iface_addr;
  // more follows
};
struct uct_ep_is_connected_params_t {
  uint64_t field_mask;
  const void* device_addr;
  const void* iface_addr;
  const void* ep_addr;
};
#endif

struct uct_iface_internal_ops_t {
#if PW_UCX_SINCE(20)
  ucs_status_t (*iface_query_v2)(uct_iface_t*, uct_iface_attr_v2_t*);
#endif
  ucs_status_t (*iface_estimate_perf)(uct_iface_t*, uct_perf_attr_t*);
  void (*iface_vfs_refresh)(uct_iface_t*);
#if PW_UCX_MINOR == 20
  uct_unused iface_mem_element_pack;
#endif
  uct_unused ep_query;
  uct_unused ep_invalidate;
#if PW_UCX_SINCE(20)
  uct_unused ep_connect_to_ep_v2;
  int (*iface_is_reachable_v2)(uct_iface_t*, const uct_iface_is_reachable_params_t*);
  int (*ep_is_connected)(uct_ep_t*, const uct_ep_is_connected_params_t*);
  uct_unused ep_get_device_ep;
#endif
#if PW_UCX_SINCE(22)
  uct_unused ep_put_sgl_zcopy;
#endif
};

struct uct_iface_config_t {
  struct {
    int* methods;
    unsigned count;
  } alloc_methods;
  int failure;
  size_t max_num_eps;
};

struct uct_am_handler_t {
  uct_am_callback_t cb;
  void* arg;
  uint32_t flags;
};

struct uct_base_iface_t {
  uct_iface_t super;
  uct_iface_internal_ops_t* internal_ops;
  uct_md_t* md;
  void* worker;
  uct_am_handler_t am[UCT_AM_ID_MAX];
  void* am_tracer;
  void* am_tracer_arg;
  uct_error_handler_t err_handler;
  void* err_handler_arg;
  uint32_t err_handler_flags;
  struct {
    int id;
    uint32_t refcount;
  } prog;
  unsigned progress_flags;
  struct {
    unsigned num_alloc_methods;
    int alloc_methods[UCT_ALLOC_METHOD_LAST];
    int failure_level;
    size_t max_num_eps;
  } config;
};

struct uct_base_ep_t {
  uct_ep_t super;
};

struct uct_tl_device_resource_t;  // made by uct_single_device_resource()

struct uct_tl_t {
  char name[10];
  ucs_status_t (*query_devices)(uct_md_t*, uct_tl_device_resource_t**, unsigned*);
  ucs_status_t (*iface_open)(uct_md_t*, uct_worker_t*, const uct_iface_params_t*, const uct_iface_config_t*,
                             uct_iface_t**);
  ucs_config_global_list_entry_t config;
  ucs_list_link_t list;
};

struct uct_md_resource_desc_t;
struct uct_md_config_t;

#if PW_UCX_SINCE(20)
struct uct_rkey_unpack_params_t;
struct uct_rkey_compare_params_t;
#endif

struct uct_component_t {
  char name[16];
  ucs_status_t (*query_md_resources)(uct_component_t*, uct_md_resource_desc_t**, unsigned*);
  ucs_status_t (*md_open)(uct_component_t*, const char*, const uct_md_config_t*, uct_md_t**);
  uct_unused cm_open;
#if PW_UCX_SINCE(20)
  ucs_status_t (*rkey_unpack)(uct_component_t*, const void*, const uct_rkey_unpack_params_t*, uct_rkey_t*,
                              void**);
#else
  ucs_status_t (*rkey_unpack)(uct_component_t*, const void*, uct_rkey_t*, void**);
#endif
  uct_unused rkey_ptr;
  ucs_status_t (*rkey_release)(uct_component_t*, uct_rkey_t, void*);
#if PW_UCX_SINCE(20)
  ucs_status_t (*rkey_compare)(uct_component_t*, uct_rkey_t, uct_rkey_t, const uct_rkey_compare_params_t*,
                               int*);
#endif
  ucs_config_global_list_entry_t md_config;
  ucs_config_global_list_entry_t cm_config;
  ucs_list_link_t tl_list;
  ucs_list_link_t list;
  uint64_t flags;
  void (*md_vfs_init)(uct_md_t*);
};

#if PW_UCX_SINCE(20)
struct uct_md_attr_t {  // uct_md_attr_v2_t of UCX
  uint64_t field_mask;
  uint64_t max_alloc;
  size_t max_reg;
  uint64_t flags;
  uint64_t reg_mem_types;
  uint64_t reg_nonblock_mem_types;
  uint64_t cache_mem_types;
  uint64_t gva_mem_types;
  uint64_t detect_mem_types;
  uint64_t alloc_mem_types;
  uint64_t access_mem_types;
  uint64_t dmabuf_mem_types;
  ucs_linear_func_t reg_cost;
  char component_name[16];
  size_t rkey_packed_size;
  ucs_cpu_set_t local_cpus;
  size_t exported_mkey_packed_size;
  char global_id[256];
  size_t reg_alignment;
#if PW_UCX_SINCE(22)
  uint8_t required_mem_flags;
#endif
};
struct uct_md_mem_reg_params_t {
  uint64_t field_mask;
  uint64_t flags;
  int dmabuf_fd;
  size_t dmabuf_offset;
  // more may follow
};
#else
struct uct_md_attr_t {
  struct {
    uint64_t max_alloc;
    size_t max_reg;
    uint64_t flags;
    uint64_t reg_mem_types;
    uint64_t detect_mem_types;
    uint64_t alloc_mem_types;
    uint64_t access_mem_types;
  } cap;
  ucs_linear_func_t reg_cost;
  char component_name[16];
  size_t rkey_packed_size;
  ucs_cpu_set_t local_cpus;
};
#endif

struct uct_md_mem_dereg_params_t {
  uint64_t field_mask;
  unsigned flags;
  uct_mem_h memh;
  uct_completion_t* comp;
};
struct uct_md_mkey_pack_params_t;

struct uct_md_ops_t {
  void (*close)(uct_md_t*);
  ucs_status_t (*query)(uct_md_t*, uct_md_attr_t*);
  uct_unused mem_alloc;
  uct_unused mem_free;
  uct_unused mem_advise;
#if PW_UCX_SINCE(20)
  ucs_status_t (*mem_reg)(uct_md_t*, void*, size_t, const uct_md_mem_reg_params_t*, uct_mem_h*);
#else
  ucs_status_t (*mem_reg)(uct_md_t*, void*, size_t, unsigned, uct_mem_h*);
#endif
  ucs_status_t (*mem_dereg)(uct_md_t*, const uct_md_mem_dereg_params_t*);
  uct_unused mem_query;
#if PW_UCX_SINCE(20)
  ucs_status_t (*mkey_pack)(uct_md_t*, uct_mem_h, void*, size_t, const uct_md_mkey_pack_params_t*, void*);
  uct_unused mem_attach;
#else
  ucs_status_t (*mkey_pack)(uct_md_t*, uct_mem_h, const uct_md_mkey_pack_params_t*, void*);
  int (*is_sockaddr_accessible)(uct_md_t*, const void*, int);
#endif
  uct_unused detect_memory_type;
#if PW_UCX_SINCE(22)
  uct_unused mem_elem_pack;
  uct_unused mem_elem_release;
#endif
};

struct uct_md_t {
  uct_md_ops_t* ops;
  uct_component_t* component;
};

/// Result, name and parameters of every function of libuct and libucs that is called.
#define PW_UCT_FUNCTIONS(X)                                                                                 \
  X(void, uct_component_register, (uct_component_t*))                                                       \
  X(void, uct_tl_register, (uct_component_t*, uct_tl_t*))                                                   \
  X(ucs_status_t, uct_md_query_single_md_resource, (uct_component_t*, uct_md_resource_desc_t**, unsigned*)) \
  X(ucs_status_t, uct_single_device_resource,                                                               \
    (uct_md_t*, const char*, unsigned, ucs_sys_device_t, uct_tl_device_resource_t**, unsigned*))            \
  X(ucs_status_t, uct_base_iface_t_init,                                                                    \
    (uct_base_iface_t*, ucs_class_t*, int*, uct_iface_ops_t*, uct_iface_internal_ops_t*, uct_md_t*,         \
     uct_worker_t*, const uct_iface_params_t*, const uct_iface_config_t*))                                  \
  X(void, uct_base_iface_query, (uct_base_iface_t*, uct_iface_attr_t*))                                     \
  X(ucs_status_t, uct_base_iface_estimate_perf, (uct_iface_t*, uct_perf_attr_t*))                           \
  X(void, uct_base_iface_progress_enable, (uct_iface_t*, unsigned))                                         \
  X(void, uct_base_iface_progress_disable, (uct_iface_t*, unsigned))                                        \
  X(ucs_status_t, uct_base_ep_t_init, (uct_base_ep_t*, ucs_class_t*, int*, uct_base_iface_t*))              \
  X(void, ucs_class_call_cleanup_chain, (ucs_class_t*, void*, int))                                         \
  PW_UCT_FUNCTIONS_OF_VERSION(X)

#if PW_UCX_SINCE(20)
#define PW_UCT_FUNCTIONS_OF_VERSION(X) \
  X(ucs_status_t, uct_iface_base_query_v2, (uct_iface_t*, uct_iface_attr_v2_t*))
#else
#define PW_UCT_FUNCTIONS_OF_VERSION(X)
#endif

/// Type and name of every object of libuct that is used.
#define PW_UCT_OBJECTS(X)                       \
  X(ucs_class_t, uct_base_iface_t_class)        \
  X(ucs_class_t, uct_base_ep_t_class)           \
  X(ucs_config_field_t, uct_iface_config_table) \
  X(ucs_config_field_t, uct_md_config_table)

/// A pointer to each of them, as the UCX that asked for the transport has them.
struct Ucx {
#define PW_UCT_POINTER(result, name, parameters) result(*name) parameters = nullptr;
  PW_UCT_FUNCTIONS(PW_UCT_POINTER)
#undef PW_UCT_POINTER
#define PW_UCT_POINTER(type, name) type* name = nullptr;
  PW_UCT_OBJECTS(PW_UCT_POINTER)
#undef PW_UCT_POINTER
};

}  // namespace pw::uct::PW_UCX
