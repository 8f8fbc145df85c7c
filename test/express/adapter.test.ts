import { describeAdapter } from '../x402/adapter.contract.js'
import { expressFramework } from './framework.js'

describeAdapter(expressFramework)
