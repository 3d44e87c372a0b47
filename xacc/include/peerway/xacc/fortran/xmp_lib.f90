! What `use xmp_lib` gives: constants and the type of descriptors. `peerway fc` declares the functions where a
! program calls them.
module xmp_lib
  include 'xmp_lib.h'
end module xmp_lib
