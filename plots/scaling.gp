
#include "style.gp"
what = 'TFLOPS per GPU'
over = word($axis[2], 1) eq 'GPUs' ? what.' as the cluster grows' : what.' over '.word($axis[2], 1)
setting = word($heading[2], 1)
source = word($heading[2], 2)
changes = 1
closer = 1
given = int(word($heading[2], 4)) > 0
if (int(word($heading[2], 3)) == 0) { banding = ': where 90 % of measured runs of such jobs are'.(given ? ', given that' : '').(|$legend| > 2 ? ', of the first curve. ' : '. ') }
#include "curves.gp"
