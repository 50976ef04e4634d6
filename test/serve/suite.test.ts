import { serviceSuite } from "../sandbox/suite.js";
import { servedModels } from "./subject.js";

serviceSuite("A served models file", servedModels, "in our hands");
