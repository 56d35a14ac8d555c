"""What cannot be imported is not collected: the estimators need scikit-learn."""

import importlib.util

collect_ignore = [] if importlib.util.find_spec("sklearn") else ["extensor/sklearn"]
