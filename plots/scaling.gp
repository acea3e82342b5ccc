
#include "style.gp"
what = 'TFLOPS per GPU'
over = word($axis[2], 1) eq 'GPUs' ? what.' as the cluster grows' : what.' over '.word($axis[2], 1)
setting = word($heading[2], 1)
source = word($heading[2], 2)
changes = 1
#include "curves.gp"
