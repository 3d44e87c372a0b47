// Component and memory domain: UCX asks here which devices there are, and registers memory.
#include <cstring>
#include <new>

#include "base/log.h"
#include "base/status.h"
#include "ucx/start.h"
#include "ucx/transport.h"

namespace pw::uct::PW_UCX {

Ucx ucx;

namespace {

uct_component_t component;
uct_tl_t transport;
uct_md_ops_t md_ops;

Domain& domain_of(uct_md_t* md) { return reinterpret_cast<MemoryDomain*>(md)->domain; }

ucs_status_t open_md(uct_component_t* of, const char*, const uct_md_config_t*, uct_md_t** out) {
  try {
    job_secrets();  // throws here rather than where a key is packed
    *out = &(new MemoryDomain(of, settings_from_environment()))->md;
    return UCS_OK;
  } catch (const std::exception& error) {
    log_once(LogLevel::error, error.what());
    return UCS_ERR_IO_ERROR;
  }
}

void close_md(uct_md_t* md) { delete reinterpret_cast<MemoryDomain*>(md); }

uint64_t memory_kinds(const pw_nic_info& info) {
  uint64_t kinds = 1u << UCS_MEMORY_TYPE_HOST;
  if ((info.memory_kinds >> PW_NIC_CUDA & 1u) != 0) kinds |= 1u << UCS_MEMORY_TYPE_CUDA;
  return kinds;
}

ucs_status_t query_md(uct_md_t* md, uct_md_attr_t* attributes) {
  const uint64_t kinds = memory_kinds(domain_of(md).info());
  const uint64_t flags = UCT_MD_FLAG_REG | UCT_MD_FLAG_NEED_MEMH | UCT_MD_FLAG_NEED_RKEY;
#if PW_UCX_SINCE(20)
  const uint64_t fields = attributes->field_mask;
  *attributes = {};
  attributes->field_mask = fields;
  auto& capabilities = *attributes;
  capabilities.reg_alignment = 1;
#else
  *attributes = {};
  auto& capabilities = attributes->cap;
#endif
  capabilities.max_reg = SIZE_MAX;
  capabilities.flags = flags;
  capabilities.reg_mem_types = kinds;
  // The CPU packs and unpacks only host memory: if GPU memory were included, UCX would do that by puts and
  // gets to itself.
  capabilities.access_mem_types = 1u << UCS_MEMORY_TYPE_HOST;
  attributes->reg_cost = {1e-6, 0};
  attributes->rkey_packed_size = sizeof(PackedKey);
  std::memset(&attributes->local_cpus, 0xff, sizeof attributes->local_cpus);
  std::memcpy(attributes->component_name, kName, sizeof kName);
  return UCS_OK;
}

// `quiet`: UCX does not need the registration, and does not want errors to be reported.
ucs_status_t add_memory(uct_md_t* md, void* address, size_t bytes, bool quiet, uct_mem_h* out) {
  try {
    *out = register_memory(domain_of(md), address, bytes, !quiet).release();
    return UCS_OK;
  } catch (const std::exception& error) {
    log(quiet ? LogLevel::debug : LogLevel::error, error.what());
    return UCS_ERR_IO_ERROR;
  }
}

#if PW_UCX_SINCE(20)
ucs_status_t reg(uct_md_t* md, void* address, size_t bytes, const uct_md_mem_reg_params_t* params,
                 uct_mem_h* out) {
  const uint64_t flags = (params->field_mask & UCT_MD_MEM_REG_FIELD_FLAGS) != 0 ? params->flags : 0;
  return add_memory(md, address, bytes, (flags & UCT_MD_MEM_FLAG_HIDE_ERRORS) != 0, out);
}
ucs_status_t pack_memory_key(uct_md_t* md, uct_mem_h memory, void*, size_t, const uct_md_mkey_pack_params_t*,
                             void* out) {
#else
ucs_status_t reg(uct_md_t* md, void* address, size_t bytes, unsigned flags, uct_mem_h* out) {
  return add_memory(md, address, bytes, (flags & UCT_MD_MEM_FLAG_HIDE_ERRORS) != 0, out);
}
int no_sockaddr(uct_md_t*, const void*, int) { return 0; }
ucs_status_t pack_memory_key(uct_md_t* md, uct_mem_h memory, const uct_md_mkey_pack_params_t*, void* out) {
#endif
  try {
    const PackedKey packed = pack_key(domain_of(md), *static_cast<RegisteredMemory*>(memory));
    std::memcpy(out, &packed, sizeof packed);
    return UCS_OK;
  } catch (const std::exception& error) {
    log(LogLevel::error, error.what());
    return UCS_ERR_NO_MEMORY;
  }
}

ucs_status_t dereg(uct_md_t* md, const uct_md_mem_dereg_params_t* params) {
  if ((params->field_mask & UCT_MD_MEM_DEREG_FIELD_MEMH) == 0) return UCS_ERR_INVALID_PARAM;
  deregister_memory(domain_of(md),
                    std::unique_ptr<RegisteredMemory>(static_cast<RegisteredMemory*>(params->memh)));
  return UCS_OK;
}

ucs_status_t unpack_key(const void* bytes, uct_rkey_t* key, void** handle) {
  try {
    *key = reinterpret_cast<uct_rkey_t>(new RemoteKey(uct::unpack_key(bytes, job_secrets().keys)));
    *handle = nullptr;
    return UCS_OK;
  } catch (const std::exception& error) {
    log(LogLevel::error, error.what());
    return UCS_ERR_INVALID_PARAM;
  }
}

#if PW_UCX_SINCE(20)
ucs_status_t unpack_rkey(uct_component_t*, const void* bytes, const uct_rkey_unpack_params_t*,
                         uct_rkey_t* key, void** handle) {
  return unpack_key(bytes, key, handle);
}
ucs_status_t compare_rkey(uct_component_t*, uct_rkey_t a, uct_rkey_t b, const uct_rkey_compare_params_t*,
                          int* result) {
  *result = a < b ? -1 : a > b ? 1 : 0;
  return UCS_OK;
}
#else
ucs_status_t unpack_rkey(uct_component_t*, const void* bytes, uct_rkey_t* key, void** handle) {
  return unpack_key(bytes, key, handle);
}
#endif

ucs_status_t release_rkey(uct_component_t*, uct_rkey_t key, void*) {
  delete reinterpret_cast<RemoteKey*>(key);
  return UCS_OK;
}

// The device is named like the NIC.
ucs_status_t query_devices(uct_md_t* md, uct_tl_device_resource_t** devices, unsigned* count) {
  return ucx.uct_single_device_resource(md, domain_of(md).endpoint().plugin().name().c_str(),
                                        UCT_DEVICE_TYPE_NET, UCS_SYS_DEVICE_ID_UNKNOWN, devices, count);
}

void empty_list(ucs_list_link_t& list) { list = {&list, &list}; }

void fill_md_ops() {
  md_ops.close = close_md;
  md_ops.query = query_md;
  md_ops.mem_alloc = md_ops.mem_free = md_ops.mem_advise = md_ops.mem_query = unsupported_as<uct_unused>();
  md_ops.mem_reg = reg;
  md_ops.mem_dereg = dereg;
  md_ops.mkey_pack = pack_memory_key;
  md_ops.detect_memory_type = unsupported_as<uct_unused>();
#if PW_UCX_SINCE(20)
  md_ops.mem_attach = unsupported_as<uct_unused>();
#else
  md_ops.is_sockaddr_accessible = no_sockaddr;
#endif
#if PW_UCX_SINCE(22)
  md_ops.mem_elem_pack = md_ops.mem_elem_release = unsupported_as<uct_unused>();
#endif
}

void fill_component() {
  std::memcpy(component.name, kName, sizeof kName);
  component.query_md_resources = ucx.uct_md_query_single_md_resource;
  component.md_open = open_md;
  component.cm_open = component.rkey_ptr = unsupported_as<uct_unused>();
  component.rkey_unpack = unpack_rkey;
  component.rkey_release = release_rkey;
#if PW_UCX_SINCE(20)
  component.rkey_compare = compare_rkey;
#endif
  component.md_config.name = "Peerway memory domain";
  component.md_config.prefix = "";
  component.md_config.table = ucx.uct_md_config_table;
  component.md_config.size = 1;
  component.cm_config.name = component.cm_config.prefix = "";
  component.md_vfs_init = [](uct_md_t*) {};
  empty_list(component.tl_list);
}

void fill_transport() {
  std::memcpy(transport.name, kName, sizeof kName);
  transport.query_devices = query_devices;
  transport.iface_open = open_interface;
  transport.config.name = "Peerway transport";
  transport.config.prefix = "PEERWAY_";
  transport.config.table = ucx.uct_iface_config_table;
  transport.config.size = sizeof(uct_iface_config_t);
}

}  // namespace

ucs_status_t unsupported() { return UCS_ERR_UNSUPPORTED; }

ucs_status_t started(pw_nic_status status) {
  if (status == PW_NIC_OK) return UCS_OK;
  return status == PW_NIC_BUSY ? UCS_ERR_NO_RESOURCE : UCS_ERR_CONNECTION_RESET;
}

MemoryDomain::MemoryDomain(uct_component_t* of, const Settings& settings)
    : md{&md_ops, of}, domain(settings) {}

std::string start(const Find& find) {
  const auto fail = [](const char* name) { return std::string("it has no ") + name; };
#define PW_UCT_FIND(result, name, parameters)                   \
  ucx.name = reinterpret_cast<decltype(ucx.name)>(find(#name)); \
  if (ucx.name == nullptr) return fail(#name);
  PW_UCT_FUNCTIONS(PW_UCT_FIND)
#undef PW_UCT_FIND
#define PW_UCT_FIND(type, name)               \
  ucx.name = static_cast<type*>(find(#name)); \
  if (ucx.name == nullptr) return fail(#name);
  PW_UCT_OBJECTS(PW_UCT_FIND)
#undef PW_UCT_FIND
  // A UCX that was configured differently (with statistics) has other structures under the same version.
  if (ucx.uct_base_iface_t_class->size != sizeof(uct_base_iface_t))
    return "its interfaces have " + std::to_string(ucx.uct_base_iface_t_class->size) + " bytes, not " +
           std::to_string(sizeof(uct_base_iface_t)) + ": it was configured otherwise (--enable-stats?)";
  if (ucx.uct_base_ep_t_class->size != sizeof(uct_base_ep_t))
    return "its endpoints have " + std::to_string(ucx.uct_base_ep_t_class->size) + " bytes, not " +
           std::to_string(sizeof(uct_base_ep_t)) + ": it was configured otherwise (--enable-stats?)";
  fill_md_ops();
  fill_component();
  fill_transport();
  ucx.uct_component_register(&component);
  ucx.uct_tl_register(&component, &transport);
  return {};
}

}  // namespace pw::uct::PW_UCX
