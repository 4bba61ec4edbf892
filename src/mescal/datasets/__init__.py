"""Real data sets: found in a local folder or the cache, or downloaded with a checksum, and encoded as arrays.

Files are looked for in the folder `MESCAL_DATA`, then in the user's cache (`MESCAL_CACHE` moves it), and are then
downloaded from their public source (`MESCAL_DATA_URL` names a mirror). To add a data set, add one file with a
`DATASET`; names, the command line and the tests find it by themselves.
"""

from .dataset import Dataset as Dataset, Declaration as Declaration, about as about, load as load, names as names
from .download import DownloadError as DownloadError
from .parquet import convert_parquet as convert_parquet
from .places import cache_folder as cache_folder
