      integer, parameter :: xmp_not_distributed = 2100
      integer, parameter :: xmp_block = 2101
      integer, parameter :: xmp_cyclic = 2102
      integer, parameter :: xmp_gblock = 2103
      type xmp_desc
        sequence
        integer(8) :: address
      end type xmp_desc
